/** Text that PostgreSQL cannot hold (NUL), or that is no text (half a surrogate pair). */
const UNSTORABLE = /[\0\p{Surrogate}]/u
const EACH_UNSTORABLE = /[\0\p{Surrogate}]/gu

export const isStorable = (text: string): boolean => !UNSTORABLE.test(text)

/** The text with U+FFFD, the replacement character, for what cannot be stored. */
export const toStorable = (text: string): string => text.replace(EACH_UNSTORABLE, '\uFFFD')
