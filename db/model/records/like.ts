/** A text as a part of a LIKE pattern: its own `%`, `_` and backslashes match themselves. */
export const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
