/** How the numbers and dates of a column are written. */
export interface ColumnFormat {
  /** The decimal separator. */
  decimal?: ',' | '.' | undefined
  /** The order of day and month in 10/12/2024. */
  date?: 'dmy' | 'mdy' | undefined
}

export const DECIMALS = [',', '.'] as const
export const DATE_ORDERS = ['dmy', 'mdy'] as const

/** What the values of a column say of it: its format, and what ambiguous values leave open. */
export interface FoundFormat extends ColumnFormat {
  open?: (keyof ColumnFormat)[]
}

/** A longer cell is neither a number nor a date. */
const MAX_CELL = 40

/**
 * Decides the format of a column by all of its values: `1.200` is ambiguous, `12,5` beside it is not. A column in which
 * some values have one format and some the other has none, so that its ambiguous values are refused.
 */
export class FormatFinder {
  private readonly decimals = new Set<',' | '.'>()
  private readonly dates = new Set<'dmy' | 'mdy'>()
  private readonly ambiguous = new Set<keyof ColumnFormat>()

  see(cell: string): void {
    if (cell.length > MAX_CELL || !/\d/.test(cell)) return
    const number = cell.replace(/[^\d.,]/g, '')
    if (/[.,]/.test(number) && !/\p{Letter}{4}/u.test(cell)) {
      if (isAmbiguousNumber(number)) this.ambiguous.add('decimal')
      else this.add(this.decimals, decimalOf(number))
    }
    const [, one, two] = DATE.exec(cell.trim()) ?? []
    if (one === undefined) return
    if (Number(one) > 12) this.dates.add('dmy')
    else if (Number(two) > 12) this.dates.add('mdy')
    else if (one !== two) this.ambiguous.add('date')
  }

  found(): FoundFormat {
    const decimal = only(this.decimals)
    const date = only(this.dates)
    const open = [...this.ambiguous].filter((what) => (what === 'decimal' ? decimal : date) === undefined)
    return { ...(decimal && { decimal }), ...(date && { date }), ...(open.length > 0 && { open }) }
  }

  private add<T>(to: Set<T>, value: T | undefined): void {
    if (value !== undefined) to.add(value)
  }
}

const only = <T>(found: Set<T>): T | undefined => (found.size === 1 ? [...found][0] : undefined)

/** Two numbers with a slash or hyphen between, and a year; with points the day always comes first. */
const DATE = /^(\d{1,2})[-/](\d{1,2})[-/]\d{4}(?:$|[T ])/

/** Whether the comma or point may be a thousands or a decimal separator. */
export const isAmbiguousNumber = (number: string): boolean => /^-?[1-9]\d{0,2}[.,]\d{3}$/.test(number)

/** The decimal separator of a number that is not ambiguous; undefined for other text, such as a date or a version. */
function decimalOf(number: string): ',' | '.' | undefined {
  for (const [decimal, group] of [
    [',', '.'],
    ['.', ','],
  ] as const) {
    const [whole = '', places, ...more] = number.split(decimal)
    if (more.length > 0) continue
    const groups = whole.split(group)
    const isGrouped = groups.length > 1 && isInThrees(groups)
    // 1.234.567 has no decimals, but its points group.
    if (groups.length > 2 && isGrouped && (places === undefined || /^\d+$/.test(places))) return decimal
    if (places !== undefined && /^\d+$/.test(places) && (isGrouped || /^\d+$/.test(whole))) return decimal
  }
  return undefined
}

export const isInThrees = ([first = '', ...groups]: string[]): boolean =>
  /^\d{1,3}$/.test(first) && groups.every((group) => /^\d{3}$/.test(group))
