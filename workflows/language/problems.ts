import { nearest } from '../shared/nearest.ts'
import type { Finding } from './definition.ts'
import { synonymOf } from './synonyms.ts'

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
