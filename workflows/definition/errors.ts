import { synonymOf } from './synonyms.ts'
import type { Finding } from './types.ts'

/** A finding without its position in the text. */
export interface Problem extends Omit<Finding, 'line' | 'column' | 'source' | 'hint'> {
  /** A function where the text takes time to find: it is called for findings that are reported. */
  hint?: string | (() => string | undefined)
  /** Points at the key rather than at its value. */
  atKey?: boolean
}

/** A JSON Pointer. */
export const pointer = (...segments: PropertyKey[]): string =>
  segments.map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/**
 * The name closest to what was written, within the edit-distance limit: default a third of its letters.
 * Takes time in proportion to the letters of names of about the same length.
 */
export function nearest(
  written: string,
  names: Iterable<string>,
  maxDistance = Math.round(written.length / 3),
): string | undefined {
  if (written.length > 100) return undefined
  const lower = written.toLowerCase()
  let best: string | undefined
  let least = maxDistance + 1
  for (const name of names) {
    if (Math.abs(name.length - written.length) >= least) continue
    const edits = distance(lower, name.toLowerCase(), least)
    if (edits < least) [best, least] = [name, edits]
  }
  return best
}

/** The same for a problem, found when it is reported: names can be thousands, and problems too. */
export const nearestName = (written: string, names: readonly string[]) => ({
  hint: () => didYouMean(written, names).hint,
})

/** The allowed name that was most likely meant: a common synonym, or else the nearest one. */
export const meantBy = (written: string, names: readonly string[]): string | undefined =>
  synonymOf(written, names) ?? nearest(written, names)

/** A hint with the name that was most likely meant, if there is one; to spread into a problem. */
export function didYouMean(written: string, names: readonly string[]): { hint?: string } {
  const name = meantBy(written, names)
  return name === undefined ? {} : { hint: `did you mean ${name}?` }
}

/**
 * The wording of hints that a program can apply. `did you mean X?`: X in place of the name at the finding's position.
 * `write `X``: X in place of the value at its path. `write `X` instead of `Y``: within the text at its path.
 * `add `X``: a line of the mapping at its path. `remove it`: the key and its value.
 */
export const write = (text: string) => `write \`${text}\``
export const writeInstead = (text: string, written: string) => `write \`${text}\` instead of \`${written}\``
export const add = (text: string) => `add \`${text}\``
export const REMOVE = 'remove it'

/** Levenshtein's, with a transposition of two letters as one edit; Infinity as soon as it is `limit` or more. */
function distance(a: string, b: string, limit: number): number {
  // The last three rows; the oldest becomes the next.
  let [before, row, next] = [0, 1, 2].map(() => new Uint8Array(b.length + 1)) as [Row, Row, Row]
  for (let j = 0; j <= b.length; j++) row[j] = j
  let leastBefore = 0
  for (let i = 1; i <= a.length; i++) {
    next[0] = i
    let least = i
    for (let j = 1; j <= b.length; j++) {
      let edits = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      edits = Math.min(edits, row[j]! + 1, next[j - 1]! + 1)
      if (j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) edits = Math.min(edits, before[j - 2]! + 1)
      next[j] = edits
      if (edits < least) least = edits
    }
    // A transposition reaches one row further back.
    if (least >= limit && leastBefore >= limit) return Infinity
    leastBefore = least
    ;[before, row, next] = [row, next, before]
  }
  return row[b.length]!
}

/** A byte holds each number of edits: longer names than some 130 letters are not compared. */
type Row = Uint8Array
