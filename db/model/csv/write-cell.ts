import { stringify } from 'csv-stringify/sync'
import { isAmbiguousNumber } from './column-format.ts'
import { type CellType, looksLikeJson } from './read-cell.ts'

/** The text of a cell for a record's value: the inverse of `readCell` with the same type. */
export function writeCell(value: unknown, type: CellType, decimal: '.' | ',' = '.'): string {
  if (value === null || value === undefined) return ''
  if (type === 'choices') return writeList(Array.isArray(value) ? value : [value])
  if (type === 'json') return escapeFormula(JSON.stringify(value))
  if (typeof value === 'object') return escapeFormula(JSON.stringify(value))
  const text = String(value)
  // A fourth decimal, so that the point is not read as a thousands separator.
  if (type === 'money' || type === 'number' || type === 'decimal') {
    const number = isAmbiguousNumber(text) ? `${text}0` : text
    return escapeFormula(decimal === ',' ? number.replace('.', ',') : number)
  }
  return escapeFormula(
    type === 'any' && typeof value === 'string' && looksLikeJson(text) ? JSON.stringify(text) : text,
  )
}

/** Tags and selected options: separated by semicolons, or JSON if an item would be read differently. */
export function writeList(items: readonly unknown[]): string {
  const texts = items.map(String)
  const plain = texts.every((text) => text.trim() === text && text !== '' && !/[;,[\]{}"]/.test(text))
  return escapeFormula(plain ? texts.join(';') : JSON.stringify(texts))
}

/**
 * Puts an apostrophe before a cell that a spreadsheet would execute as a formula (OWASP, CSV injection), also before an
 * existing apostrophe, so that it is reversible. A sign followed only by digits is a phone number or a negative number
 * and stays unchanged.
 */
export const escapeFormula = (text: string) =>
  /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]\d+([.,]\d+)?$/.test(text) ? `'${text}` : text

/** Lines of a file. Cells with outer blanks or line ends are quoted, because an unquoted cell would lose them. */
export const csvLines = (rows: string[][], delimiter = ','): string =>
  stringify(rows, { delimiter, record_delimiter: '\r\n', quoted_match: /[\r\n]|^\s|\s$/ })

export const BYTE_ORDER_MARK = '\ufeff'
