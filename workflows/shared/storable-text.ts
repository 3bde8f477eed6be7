/** Characters that PostgreSQL cannot store: NUL and lone surrogates. */
const UNSTORABLE = /[\0\p{Surrogate}]/u
const EACH_UNSTORABLE = /[\0\p{Surrogate}]/gu

export const isStorable = (text: string): boolean => !UNSTORABLE.test(text)

/** Replaces each of these with U+FFFD, the replacement character. */
export const toStorable = (text: string): string => text.replace(EACH_UNSTORABLE, '\uFFFD')
