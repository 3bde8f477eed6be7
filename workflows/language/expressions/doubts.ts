import type { Token, Value } from 'liquidjs'
import { OMIT } from './omitted.ts'
import { endOf } from './token-ends.ts'

/** What an expression has that does not mean what it seems to. */
export interface Doubts {
  /** The numbers that have more digits than a number holds, as they are written. */
  inexact: string[]
  /** The filters behind an operator, each with the expression that it follows. */
  filtered: Filtered[]
}

/** `before` and `last` are the expression: the last value, and all that is before it. */
interface Filtered {
  before: string
  last: string
  filters: string
}

/** For the author: what is in doubt, and how to write it. */
export interface Doubt {
  message: string
  hint?: string
}

/**
 * Notes the filters that follow an operator: `c ? a : b | times: 2` applies to all before it, where authors, and other
 * languages, take it for `c ? a : (b | times: 2)`. `omit_if_empty` can only be meant for the whole, since it is refused
 * in parentheses. `end`: where the filters end; by default at the end of the placeholder.
 */
export function noteFilters(
  { initial, filters }: { initial: Value['initial']; filters: readonly { name: string }[] },
  { filtered }: Doubts,
  end?: number,
): void {
  const [name] = filters.map((filter) => filter.name)
  if (name === undefined || name === OMIT || initial.postfix.length < 2) return
  const tokens = [...initial.postfix].sort((a, b) => a.begin - b.begin)
  const [first, last] = [tokens[0]!, tokens.at(-1)!]
  const after = endOf(last)
  filtered.push({
    before: last.input.slice(first.begin, last.begin),
    last: last.input.slice(last.begin, after),
    filters: last.input.slice(after, end ?? endOfPlaceholder(last, after)).trim(),
  })
}

function endOfPlaceholder({ input }: Token, from: number): number {
  const end = /-?\}\}/.exec(input.slice(from))
  return end ? from + end.index : input.length
}

/** The most characters of an expression that a hint repeats. */
const MOST_SHOWN = 300

/** The first doubt; undefined if there is none. */
export function doubtIn({ inexact: [number], filtered: [one] }: Doubts): Doubt | undefined {
  if (number !== undefined)
    return { message: `${number.slice(0, 50)} has more digits than a number holds: write it in quotes` }
  if (one === undefined) return undefined
  const { before, last, filters } = one
  const [, own = filters, omission = ''] = /^([\s\S]*?)(\s*\|\s*omit_if_empty)$/.exec(filters) ?? []
  const whole = `(${before}${last}) ${filters}`
  const part = `${before}(${last} ${own})${omission}`
  return {
    message: `\`${filters.slice(0, 100)}\` follows an operator without parentheses: it would apply to all before it`,
    hint:
      whole.length > MOST_SHOWN
        ? 'put into parentheses what the filter is for: the last value with its filter, or all before the filter'
        : `write \`${part}\` for the last value, or \`${whole}\` for all of it`,
  }
}
