import { stringify } from 'csv-stringify/sync'
import { type CellType, isAmbiguous, looksLikeJson } from './read-cell.ts'

/** A value of a record as the text of a cell: `readCell` of the same type reads it back. */
export function writeCell(value: unknown, type: CellType): string {
  if (value === null || value === undefined) return ''
  if (type === 'choices') return writeList(Array.isArray(value) ? value : [value])
  if (type === 'json') return defused(JSON.stringify(value))
  if (typeof value === 'object') return defused(JSON.stringify(value))
  const text = String(value)
  // One decimal more, so that it is no thousand.
  if (type === 'money') return defused(isAmbiguous(text) ? `${text}0` : text)
  return defused(
    type === 'any' && typeof value === 'string' && looksLikeJson(text) ? JSON.stringify(text) : text,
  )
}

/** Tags and chosen options: separated by semicolons, or JSON where an item would be read as something else. */
export function writeList(items: readonly unknown[]): string {
  const texts = items.map(String)
  const plain = texts.every((text) => text.trim() === text && text !== '' && !/[;,[\]{}"]/.test(text))
  return defused(plain ? texts.join(';') : JSON.stringify(texts))
}

/**
 * A cell that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, CSV injection), also one that
 * has one already, so that it can be taken away again. A sign before nothing but digits is a phone number or a
 * negative number: nothing to execute, and it stays as it is.
 */
export const defused = (text: string) =>
  /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]\d+(\.\d+)?$/.test(text) ? `'${text}` : text

/** Lines of a file. What an unquoted cell would lose (blanks around it, single line ends) is quoted. */
export const csvLines = (rows: string[][], delimiter = ','): string =>
  stringify(rows, { delimiter, record_delimiter: '\r\n', quoted_match: /[\r\n]|^\s|\s$/ })

export const BYTE_ORDER_MARK = '\ufeff'
