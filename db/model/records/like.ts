/** Escapes `%`, `_` and backslashes of a text, so that they match literally in a LIKE pattern. */
export const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
