/** The formats of the filter `date` and of the node that formats dates: those of strftime. */

/** The directives that LiquidJS writes, and those that `expanded` replaces by others. */
const KNOWN = 'aAbBcCdeHhIjklLmMNpPqsSuUwWxXyYzZtn%'
const SHORT: Readonly<Record<string, string>> = {
  F: '%Y-%m-%d',
  T: '%H:%M:%S',
  R: '%H:%M',
  D: '%m/%d/%y',
}
const OF_WEEK = 'VG'

/** `%Y`, also with flags and a width: `%-d`, `%3N`. */
const DIRECTIVE = /%[-_0^#:]*\d*[EO]?(.|$)/gs

export interface FormatProblem {
  problem: string
  /** The format that was meant, as far as that is known. */
  meant?: string | undefined
}

/**
 * What is wrong with a format: it has no directive, as the formats of other languages, a directive that does not exist,
 * which would be written as it is, or the minute among days, or the month among hours. Undefined if nothing is.
 */
export function formatProblem(format: string): FormatProblem | undefined {
  const directives = [...format.matchAll(DIRECTIVE)]
  if (directives.length === 0)
    return {
      problem: `the format ${JSON.stringify(format.slice(0, 50))} has no directive such as %Y, %m, %d, %H or %M`,
      meant: strftimeOf(format),
    }
  const isKnown = (letter = '') => letter !== '' && (KNOWN + OF_WEEK).includes(letter)
  const unknown = directives.find(([, letter]) => !isKnown(letter) && !Object.hasOwn(SHORT, letter ?? ''))
  if (unknown) return { problem: `the format has the directive ${unknown[0]}, which does not exist` }
  const letters = directives.map(([, letter]) => letter!)
  const hasHour = letters.some((letter) => 'HIklTRcX'.includes(letter))
  if (letters.includes('M') && !hasHour && letters.some((letter) => 'dejYy'.includes(letter)))
    return { problem: '%M is the minute, and the month is %m', meant: format.replace('%M', '%m') }
  const minute = /(%[HIkl]:)%m/
  if (minute.test(format))
    return { problem: '%m is the month, and the minute is %M', meant: format.replace(minute, '$1%M') }
  return undefined
}

/** `Z`, `UTC` or `GMT` right after a time of day, but not `GMT+1`. */
const UTC_WORD = /%[-_0^#:]*\d*[TRHIMSLNpPXc](?:\.\d+)? ?\(?(?:Z|UTC|GMT)(?!\p{L}|\d| ?[+-]\d)/u

/** Whether a format names UTC itself, as `%FT%TZ`: a local time in it would be another moment. */
export const namesUtc = (format: string): boolean =>
  UTC_WORD.test(format.replaceAll('%%', ' ')) || /[+-]00:?00/.test(format.replaceAll(DIRECTIVE, ' '))

/** A format with the directives that LiquidJS has. `day`: the day that is written, as 2026-01-31. */
export function expanded(format: string, day: () => string): string {
  let week: { year: number; week: number } | undefined
  return format.replace(DIRECTIVE, (written, letter: string) => {
    if (Object.hasOwn(SHORT, letter)) return SHORT[letter]!
    if (!OF_WEEK.includes(letter) || letter === '') return written
    week ??= isoWeek(day())
    return letter === 'G' ? String(week.year) : String(week.week).padStart(2, '0')
  })
}

/** The week of ISO 8601 that a day is in: week 1 has the first Thursday of its year. */
function isoWeek(day: string): { year: number; week: number } {
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() + 4 - (date.getUTCDay() || 7))
  const year = date.getUTCFullYear()
  return { year, week: Math.ceil(((date.getTime() - Date.UTC(year, 0, 1)) / DAY_MS + 1) / 7) }
}

const DAY_MS = 86_400_000

/** The parts of formats of other languages, the longer ones first. */
const FOREIGN: readonly [string, string][] = [
  ['YYYY', '%Y'],
  ['yyyy', '%Y'],
  ['MMMM', '%B'],
  ['MMM', '%b'],
  ['dddd', '%A'],
  ['EEEE', '%A'],
  ['ddd', '%a'],
  ['EEE', '%a'],
  ['YY', '%y'],
  ['yy', '%y'],
  ['MM', '%m'],
  ['DD', '%d'],
  ['dd', '%d'],
  ['HH', '%H'],
  ['hh', '%I'],
  ['mm', '%M'],
  ['ss', '%S'],
]

/** `dd.MM.yyyy` as `%d.%m.%Y`; undefined if the format has another letter. */
function strftimeOf(format: string): string | undefined {
  let [rest, written] = [format, '']
  while (rest !== '') {
    const found = FOREIGN.find(([part]) => rest.startsWith(part))
    if (!found && /^[a-zA-Z]/.test(rest)) return undefined
    written += found ? found[1] : rest[0]
    rest = rest.slice(found ? found[0].length : 1)
  }
  return written.includes('%') ? written : undefined
}
