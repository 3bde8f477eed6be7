import { type ColumnFormat, isAmbiguousNumber, isInThrees } from './column-format.ts'

/** Parses cells as spreadsheets and other systems write them. Ambiguous text is refused. */

export type CellType =
  | 'text'
  | 'number'
  | 'integer'
  /** A percentage as a whole number. */
  | 'percent'
  | 'money'
  /** An exact number, or a percentage with decimals. */
  | 'decimal'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'choice'
  | 'choices'
  | 'json'
  /** A custom field without a definition: a text, or a list. */
  | 'any'

/** A cell that cannot be read or is ambiguous; the message becomes an issue of the row. */
export class CellProblem extends Error {}

/**
 * The value of a cell that is not blank. Throws CellProblem for unreadable or ambiguous text. Unknown dates and choices
 * are returned unchanged; validation reports them. `choices` are the values of `choice` and `choices`; `delimiter` is the
 * file's, because it hints at the number format; `format` is that of the column, where it was decided by all its values.
 */
export function readCell(
  cell: string,
  type: CellType,
  choices: readonly string[] = [],
  delimiter = ',',
  format?: ColumnFormat,
): unknown {
  const text = unescapeFormula(cell)
  switch (type) {
    case 'text':
      return text
    case 'boolean':
      return readBoolean(text) ?? problem('must be true or false, or yes or no')
    case 'number':
    case 'integer': {
      const decimal = toDecimal(text, type, delimiter, format)
      if (NUMBER.test(decimal)) return Number(decimal)
      return problem(type === 'integer' ? 'must be a whole number' : 'must be a number')
    }
    case 'percent':
      return toPercent(text.trim(), delimiter, format)
    case 'decimal':
      return toDecimal(text.replace(/\s*%\s*$/, ''), type, delimiter, format)
    case 'money':
      return toDecimal(text, type, delimiter, format)
    case 'date':
      return toDate(text.trim(), format?.date)
    case 'datetime':
      return toDateTime(text.trim(), format?.date)
    case 'choice':
      return readChoice(text, choices)
    case 'choices':
      return splitList(text, choices).map((item) => readChoice(item, choices))
    case 'json':
      return parsed(text, /./s) ?? text
    case 'any':
      return toAny(text)
  }
}

function problem(message: string): never {
  throw new CellProblem(message)
}

/** Removes the apostrophe that an export put before a formula. */
export const unescapeFormula = (cell: string) =>
  /^'+[=+\-@\t\r\n＝＋－＠]/.test(cell) ? cell.slice(1) : cell

const words = (value: boolean, text: string) =>
  text.split(' ').map((word): [string, boolean] => [word, value])
// A Map, because a cell may contain the name of an inherited member, such as `constructor`.
const BOOLEANS = new Map([
  ...words(true, 'true yes y 1 on x wahr ja vrai oui verdadero si sí'),
  ...words(false, 'false no n 0 off falsch nein faux non falso'),
])

export const readBoolean = (text: string): boolean | undefined => BOOLEANS.get(text.trim().toLowerCase())

const NUMBER = /^-?\d{1,15}(\.\d+)?$/

/**
 * A number in JSON syntax, without currency signs and thousands separators. If both comma and point occur, the last one
 * is the decimal separator; a repeated one groups thousands.
 */
function toDecimal(text: string, type: CellType, delimiter: string, format?: ColumnFormat): string {
  const bracketed = /^\((.*)\)$/.exec(text.trim())
  const digits = (bracketed ? `-${bracketed[1]}` : text).replace(/[\p{Sc}\s'’_]/gu, '').replace('−', '-')
  // Two patterns: one combined pattern takes quadratic time in the length of the cell, which may be 1 MiB.
  if (!/^[+-]?[\d.,]+$/.test(digits) || !/\d/.test(digits)) return text
  const number = digits.replace('+', '')
  if (format?.decimal) return inFormat(text, number, format.decimal, type)
  if (type === 'integer') {
    if (/^-?\d{1,3}([.,]\d{3})+$/.test(number)) return number.replace(/[.,]/g, '')
    return number.replace(/[.,]0+$/, '')
  }
  const commas = number.split(',').length - 1
  const points = number.split('.').length - 1
  // A single point is a decimal point, except in money (never three decimals) and in files with semicolons, which
  // spreadsheets write if the decimal separator is the comma.
  if (isAmbiguousNumber(number) && (format || commas > 0 || type === 'money' || delimiter === ';'))
    return problem(`${text.trim()} is ambiguous: write ${bothWays(number, delimiter)}`)
  if (commas === 0 && points <= 1) return number
  if (commas > 0 && points > 0)
    return number.lastIndexOf(',') > number.lastIndexOf('.')
      ? (grouped(number, '.', ',') ?? text)
      : (grouped(number, ',', '.') ?? text)
  if (points > 1) return grouped(number, '.', ',') ?? text
  if (commas > 1) return grouped(number, ',', '.') ?? text
  return number.replace(',', '.')
}

/** A number whose decimal separator is known. Throws CellProblem for one that the column's format does not allow. */
function inFormat(text: string, number: string, decimal: ',' | '.', type: CellType): string {
  const [whole = '', places, ...more] = number.replace('-', '').split(decimal)
  const groups = whole.split(decimal === ',' ? '.' : ',')
  const isWhole = groups.length === 1 ? /^\d*$/.test(whole) : isInThrees(groups)
  // No amount has three decimals: `8.000` beside `1,250.00` was written by somebody else.
  const isOdd = type === 'money' && places?.length === 3 && isAmbiguousNumber(number)
  if (more.length > 0 || !isWhole || isOdd || (places !== undefined && !/^\d+$/.test(places)))
    return problem(
      `${text.trim()} does not fit the other values of the column, whose decimal separator is the ${decimal === ',' ? 'comma' : 'point'}`,
    )
  const isInteger = type === 'integer' && /^0*$/.test(places ?? '')
  const fraction = places === undefined || isInteger ? '' : `.${places}`
  return `${number.startsWith('-') ? '-' : ''}${groups.join('') || '0'}${fraction}`
}

/** The two meanings, each in unambiguous form; the decimal with the separator of the file's locale. */
function bothWays(number: string, delimiter: string): string {
  const [whole, places] = number.split(/[.,]/) as [string, string]
  const short = places.replace(/0+$/, '').padEnd(2, '0')
  return `${whole}${places} or ${whole}${delimiter === ';' ? ',' : '.'}${short.length === 3 ? `${short}0` : short}`
}

/** `50%` is 50. Without a sign, 0.5 and 1.0 are ambiguous: other systems export fractions. */
function toPercent(text: string, delimiter: string, format?: ColumnFormat): number {
  const signed = text.endsWith('%')
  const decimal = toDecimal(signed ? text.slice(0, -1) : text, 'percent', delimiter, format)
  const number = NUMBER.test(decimal) ? Number(decimal) : Number.NaN
  if (!signed && decimal.includes('.') && number > 0 && number <= 1)
    return problem('may be a fraction or a percentage: for one half write 50 or 50%')
  return Number.isInteger(number) ? number : problem('must be a whole percentage, such as 50 or 50%')
}

function grouped(number: string, thousands: string, decimal: string): string | undefined {
  const [whole = '', places, ...more] = number.split(decimal)
  const groups = whole.replace('-', '').split(thousands)
  if (more.length > 0 || groups.slice(1).some((group) => group.length !== 3) || groups[0]!.length > 3)
    return undefined
  const sign = number.startsWith('-') ? '-' : ''
  return `${sign}${groups.join('')}${places === undefined ? '' : `.${places}`}`
}

const TIME = '(?:[T ]+(\\d{1,2}):(\\d{2})(?::(\\d{2})(\\.\\d+)?)?(?: ?([AP]M))?)?'
const YEAR_FIRST = new RegExp(`^(\\d{4})[-/.](\\d{1,2})[-/.](\\d{1,2})${TIME}$`, 'i')
const YEAR_LAST = new RegExp(`^(\\d{1,2})([-/.])(\\d{1,2})\\2(\\d{4})${TIME}$`, 'i')
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d/

/** RFC 3339, without an offset where the text has no zone. */
function toDateTime(text: string, order?: ColumnFormat['date']): string {
  // Salesforce writes +0000.
  if (ISO.test(text) && /(Z|[+-]\d\d:?\d\d)$/i.test(text)) return text.replace(/([+-]\d\d)(\d\d)$/, '$1:$2')
  const first = YEAR_FIRST.exec(text)
  if (first) return joined(first.slice(1, 4), first.slice(4))
  const last = YEAR_LAST.exec(text)
  if (!last) return text
  const [, one, separator, two, year] = last as unknown as string[]
  return joined([year, ...dayAndMonth(text, one!, two!, separator!, order)], last.slice(5))
}

/** The date as written: other systems export every date with a time. */
function toDate(text: string, order?: ColumnFormat['date']): string {
  const read = toDateTime(text, order)
  const [, day, time] = /^(\d{4}-\d\d-\d\d)(T.*)?$/.exec(read) ?? []
  return day === undefined || (time && Number.isNaN(Date.parse(read))) ? text : day
}

/** 31.12.2026 has the day first, as usual with points; 12/31 can only have the month first. */
function dayAndMonth(
  text: string,
  one: string,
  two: string,
  separator: string,
  order: ColumnFormat['date'],
): [month: string, day: string] {
  if (separator === '.' || Number(one) > 12 || one === two) return [two, one]
  if (Number(two) > 12) return [one, two]
  if (order) return order === 'dmy' ? [two, one] : [one, two]
  throw new CellProblem(`${text} is ambiguous: write the date as 2026-01-31`)
}

function joined(date: (string | undefined)[], time: (string | undefined)[]): string {
  const two = (part: string | undefined) => (part ?? '').padStart(2, '0')
  const day = `${date[0]}-${two(date[1])}-${two(date[2])}`
  const [hour, minute, second, fraction, half] = time
  if (hour === undefined) return day
  const shift = half ? (Number(hour) % 12) + (/p/i.test(half) ? 12 : 0) : Number(hour)
  return `${day}T${two(String(shift))}:${minute}:${second ?? '00'}${fraction ?? ''}`
}

const plain = (text: string) => text.toLowerCase().replace(/[^\p{Letter}\p{Number}]/gu, '')

/** The matching choice, ignoring case and separators: `In progress` is in_progress. */
export function readChoice(text: string, choices: readonly string[]): string {
  const trimmed = text.trim()
  if (choices.includes(trimmed)) return trimmed
  const wanted = plain(trimmed)
  return (
    choices.find((choice) => plain(choice) === wanted) ??
    ALIASES.get(wanted)?.find((one) => choices.includes(one)) ??
    trimmed
  )
}

/** Names of our choices in HubSpot, Salesforce, Mailchimp and others. */
const ALIASES = new Map(
  Object.entries({
    marketingqualifiedlead: ['mql'],
    salesqualifiedlead: ['sql'],
    attemptedtocontact: ['attempted'],
    opendeal: ['open'],
    closedwon: ['won'],
    closedlost: ['lost'],
    newbusiness: ['new_business'],
    existingbusiness: ['existing_business'],
    notstarted: ['todo'],
    completed: ['done', 'completed'],
    appointmentscheduled: ['qualified'],
    qualifiedtobuy: ['qualified'],
    presentationscheduled: ['proposal'],
    contractsent: ['negotiation'],
    decisionmakerboughtin: ['negotiation'],
    prospecting: ['lead'],
    qualification: ['qualified'],
    needsanalysis: ['qualified'],
    valueproposition: ['proposal'],
    proposalpricequote: ['proposal'],
    negotiationreview: ['negotiation'],
    proposalmade: ['proposal'],
    negotiationsstarted: ['negotiation'],
    opennotcontacted: ['new'],
    workingcontacted: ['in_progress'],
    inprogress: ['in_progress'],
    badtiming: ['unqualified'],
    closednotconverted: ['unqualified'],
    subscribed: ['granted'],
    optin: ['granted'],
    optedin: ['granted'],
    unsubscribed: ['withdrawn'],
    optout: ['withdrawn'],
    optedout: ['withdrawn'],
    revoked: ['withdrawn'],
    legitimateinterests: ['legitimate_interest'],
    mail: ['post'],
    letter: ['post'],
  }),
)

/** The separators of lists, the most certain first: Google writes `:::`, HubSpot `;`. */
const SEPARATORS = [':::', ';', '|', '\n', ',']

/** The items of a list: JSON, or separated by the first of the separators that the text has. */
function toList(text: string, separators: readonly string[] = SEPARATORS): string[] {
  const list = parsed(text)
  if (Array.isArray(list) && list.every((item) => typeof item !== 'object')) return list.map(String)
  const separator = separators.find((one) => text.includes(one)) ?? ';'
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter(Boolean)
}

/** The items of a list whose values are choices: what a choice contains does not separate. */
export const splitList = (text: string, choices: readonly string[]): string[] =>
  toList(
    text,
    SEPARATORS.filter((one) => !choices.some((choice) => choice.includes(one))),
  )

/** A list such as tags. */
export const readList = (cell: string): string[] => toList(unescapeFormula(cell))

/** A list if the text is a JSON list; a JSON string is unwrapped if its content looks like JSON; else the text itself. */
function toAny(text: string): unknown {
  const value = parsed(text)
  if (Array.isArray(value)) return value
  return typeof value === 'string' && looksLikeJson(value) ? value : text
}

/** Whether a text must be written as a JSON string, because `toAny` would change it otherwise. */
export const looksLikeJson = (text: string): boolean => {
  const value = parsed(text)
  return Array.isArray(value) || (typeof value === 'string' && looksLikeJson(value))
}

function parsed(text: string, beginning = /^\s*[[{"]/): unknown {
  if (!beginning.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
