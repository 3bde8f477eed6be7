/** How the text of a cell becomes a value: what spreadsheets and other systems write, where it can mean one thing only. */

/** What a cell holds. */
export type CellType =
  | 'text'
  | 'number'
  | 'integer'
  /** A whole number of percent. */
  | 'percent'
  | 'money'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'choice'
  | 'choices'
  | 'json'
  /** A custom field without a definition: a text, or a list. */
  | 'any'

/** Something that a person must decide: it is what is wrong with the row. */
export class CellProblem extends Error {}

/**
 * The value of a cell that is not blank. Throws CellProblem for what cannot be understood, or may mean two things; what
 * is not understood as a date or a choice stays as it is, for validation to say so. `choices` are the values of `choice`
 * and `choices`; `delimiter` is the file's, for it tells what its numbers may look like.
 */
export function readCell(
  cell: string,
  type: CellType,
  choices: readonly string[] = [],
  delimiter = ',',
): unknown {
  const text = undefused(cell)
  switch (type) {
    case 'text':
      return text
    case 'boolean':
      return BOOLEANS.get(text.trim().toLowerCase()) ?? problem('must be true or false, or yes or no')
    case 'number':
    case 'integer': {
      const decimal = toDecimal(text, type, delimiter)
      if (NUMBER.test(decimal)) return Number(decimal)
      return problem(type === 'integer' ? 'must be a whole number' : 'must be a number')
    }
    case 'percent':
      return toPercent(text.trim(), delimiter)
    case 'money':
      return toDecimal(text, type, delimiter)
    case 'date':
      return toDate(text.trim())
    case 'datetime':
      return toDateTime(text.trim())
    case 'choice':
      return toChoice(text, choices)
    case 'choices':
      return toList(text, choices.some((choice) => choice.includes(',')) ? /;/ : /[;,]/).map((item) =>
        toChoice(item, choices),
      )
    case 'json':
      return parsed(text, /./s) ?? text
    case 'any':
      return toAny(text)
  }
}

function problem(message: string): never {
  throw new CellProblem(message)
}

/** A formula that an export has put an apostrophe in front of. */
export const undefused = (cell: string) => (/^'+[=+\-@\t\r\n＝＋－＠]/.test(cell) ? cell.slice(1) : cell)

const words = (value: boolean, text: string) =>
  text.split(' ').map((word): [string, boolean] => [word, value])
// Maps, for a cell may hold the name of any member of an object: `constructor`.
const BOOLEANS = new Map([
  ...words(true, 'true yes y 1 on x wahr ja vrai oui verdadero si sí'),
  ...words(false, 'false no n 0 off falsch nein faux non falso'),
])

const NUMBER = /^-?\d{1,15}(\.\d+)?$/

/**
 * A number as JSON writes it: without currency signs and thousands separators. Of comma and point the last one is the
 * decimal separator; one that is there several times groups thousands.
 */
function toDecimal(text: string, type: CellType, delimiter: string): string {
  const bracketed = /^\((.*)\)$/.exec(text.trim())
  const digits = (bracketed ? `-${bracketed[1]}` : text).replace(/[\p{Sc}\s'’_]/gu, '').replace('−', '-')
  // In two steps: as one pattern it would take the square of the length of a cell, which may be a MiB.
  if (!/^[+-]?[\d.,]+$/.test(digits) || !/\d/.test(digits)) return text
  const number = digits.replace('+', '')
  if (type === 'integer') {
    if (/^-?\d{1,3}([.,]\d{3})+$/.test(number)) return number.replace(/[.,]/g, '')
    return number.replace(/[.,]0+$/, '')
  }
  const commas = number.split(',').length - 1
  const points = number.split('.').length - 1
  // A point is a decimal one, but where three decimals are unheard of, or where the decimal separator is probably the
  // comma: there spreadsheets separate cells by semicolons.
  if (isAmbiguous(number) && (commas > 0 || type === 'money' || delimiter === ';'))
    return problem(`${text.trim()} may be a thousand or a decimal: write ${bothWays(number, delimiter)}`)
  if (commas === 0 && points <= 1) return number
  if (commas > 0 && points > 0)
    return number.lastIndexOf(',') > number.lastIndexOf('.')
      ? (grouped(number, '.', ',') ?? text)
      : (grouped(number, ',', '.') ?? text)
  if (points > 1) return grouped(number, '.', ',') ?? text
  if (commas > 1) return grouped(number, ',', '.') ?? text
  return number.replace(',', '.')
}

/** Whether its comma or point may group thousands as well as begin three decimals. */
export const isAmbiguous = (number: string) => /^-?[1-9]\d{0,2}[.,]\d{3}$/.test(number)

/** The thousand and the decimal as they are not mistaken, the latter as it is written where the file comes from. */
function bothWays(number: string, delimiter: string): string {
  const [whole, places] = number.split(/[.,]/) as [string, string]
  const short = places.replace(/0+$/, '').padEnd(2, '0')
  return `${whole}${places} or ${whole}${delimiter === ';' ? ',' : '.'}${short.length === 3 ? `${short}0` : short}`
}

/** `50%` is 50. What has no sign and is written as 0.5 or 1.0 may be the half and the whole, as others export it. */
function toPercent(text: string, delimiter: string): number {
  const signed = text.endsWith('%')
  const decimal = toDecimal(signed ? text.slice(0, -1) : text, 'percent', delimiter)
  const number = NUMBER.test(decimal) ? Number(decimal) : Number.NaN
  if (!signed && decimal.includes('.') && number > 0 && number <= 1)
    return problem('may be a share or percent: for one half write 50 or 50%')
  return Number.isInteger(number) ? number : problem('must be a whole number of percent, such as 50 or 50%')
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

/** RFC 3339. Times without a zone are UTC. */
function toDateTime(text: string): string {
  if (ISO.test(text) && /(Z|[+-]\d\d:?\d\d)$/i.test(text)) return text
  const first = YEAR_FIRST.exec(text)
  if (first) return joined(first.slice(1, 4), first.slice(4))
  const last = YEAR_LAST.exec(text)
  if (!last) return text
  const [, one, separator, two, year] = last as unknown as string[]
  return joined([year, ...dayAndMonth(text, one!, two!, separator!)], last.slice(5))
}

/** Of a time the day, as it is written: others export one with every date. */
function toDate(text: string): string {
  const read = toDateTime(text)
  const [, day, time] = /^(\d{4}-\d\d-\d\d)(T.*)?$/.exec(read) ?? []
  return day === undefined || (time && Number.isNaN(Date.parse(read))) ? text : day
}

/** 31.12.2026 is a day first, as points are written where that is the custom; 12/31 can only be a month first. */
function dayAndMonth(
  text: string,
  one: string,
  two: string,
  separator: string,
): [month: string, day: string] {
  if (separator === '.' || Number(one) > 12 || one === two) return [two, one]
  if (Number(two) > 12) return [one, two]
  throw new CellProblem(`${text} may be two dates: write it as 2026-01-31`)
}

function joined(date: (string | undefined)[], time: (string | undefined)[]): string {
  const two = (part: string | undefined) => (part ?? '').padStart(2, '0')
  const day = `${date[0]}-${two(date[1])}-${two(date[2])}`
  const [hour, minute, second, fraction, half] = time
  if (hour === undefined) return day
  const shift = half ? (Number(hour) % 12) + (/p/i.test(half) ? 12 : 0) : Number(hour)
  return `${day}T${two(String(shift))}:${minute}:${second ?? '00'}${fraction ?? ''}Z`
}

const plain = (text: string) => text.toLowerCase().replace(/[^\p{Letter}\p{Number}]/gu, '')

/** As the choice is written, whatever its case and separators: `In progress` is in_progress. */
function toChoice(text: string, choices: readonly string[]): string {
  const given = text.trim()
  if (choices.includes(given)) return given
  const wanted = plain(given)
  return (
    choices.find((choice) => plain(choice) === wanted) ??
    ALIASES.get(wanted)?.find((one) => choices.includes(one)) ??
    given
  )
}

/** What HubSpot calls what we have another name for. */
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
  }),
)

/** The items of a list: JSON, or separated by semicolons as HubSpot writes them. */
function toList(text: string, separator: RegExp): string[] {
  const list = parsed(text)
  if (Array.isArray(list) && list.every((item) => typeof item !== 'object')) return list.map(String)
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter(Boolean)
}

/** Tags and the like: also separated by commas, where there are no semicolons. */
export const readList = (cell: string): string[] => {
  const text = undefused(cell)
  return toList(text, text.includes(';') ? /;/ : /,/)
}

/** A JSON list is a list, and a text that looks like one is JSON of a text; all else is what it says. */
function toAny(text: string): unknown {
  const value = parsed(text)
  if (Array.isArray(value)) return value
  return typeof value === 'string' && looksLikeJson(value) ? value : text
}

/** Whether a text must be written as JSON, to be read as the text that it is. */
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
