import { looksLikeJson } from './read-cell.ts'

/**
 * A value of a record as the text of a cell; `readCell` reads it back. Lists are separated by semicolons, or are JSON
 * where an item has one in it.
 */
export function writeCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return defused(looksLikeJson(value) ? JSON.stringify(value) : value)
  if (typeof value !== 'object') return String(value)
  return defused(JSON.stringify(value))
}

/** Tags and chosen options. */
export function writeList(items: readonly unknown[]): string {
  const texts = items.map(String)
  const plain = texts.every((text) => text.trim() === text && text !== '' && !/[;,[\]{}"]/.test(text))
  return defused(plain ? texts.join(';') : texts.length === 0 ? '' : JSON.stringify(texts))
}

/**
 * A cell that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, CSV injection), also one that
 * has one already, so that it can be taken away again. A sign before nothing but digits is a phone number or a
 * negative number: nothing to execute, and it stays as it is.
 */
export const defused = (text: string) =>
  /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]\d+(\.\d+)?$/.test(text) ? `'${text}` : text
