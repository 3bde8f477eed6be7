import { nearest } from '../shared/nearest.ts'
import type { Finding } from './definition.ts'
import { meansOther, synonymOf } from './synonyms.ts'

/** A finding without its position in the text. */
export interface Problem extends Omit<Finding, 'line' | 'column' | 'source' | 'hint'> {
  /** A function if the hint takes time to compute: it is called only for findings that are reported. */
  hint?: string | (() => string | undefined)
  /** Points at the key rather than at its value. */
  atKey?: boolean
}

/** A JSON Pointer. */
export const pointer = (...segments: PropertyKey[]): string =>
  segments.map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** The hint `didYouMean`, computed only if the problem is reported: there can be thousands of names and problems. */
export const nearestName = (written: string, names: readonly string[]) => ({
  hint: () => didYouMean(written, names).hint,
})

/** The allowed name that was most likely meant: a synonym, or else the nearest name. */
export const meantBy = (written: string, names: readonly string[]): string | undefined =>
  synonymOf(written, names) ??
  nearest(
    written,
    names.filter((name) => !meansOther(written, name)),
  )

/** A hint with the name that was most likely meant, if there is one; to spread into a problem. */
export function didYouMean(written: string, names: readonly string[]): { hint?: string } {
  const name = meantBy(written, names)
  return name === undefined ? {} : { hint: `did you mean ${name}?` }
}

/**
 * The wording of hints that a program can apply. `did you mean X?`: replace the name at the finding's position by X.
 * `write `X``: replace the value at its path. `write `X` instead of `Y``: replace Y within the text at its path.
 * `add `X``: add a line to the mapping at its path. `remove it`: remove the key and its value. `replace it by `X: Y``:
 * another key and value in their place.
 */
export const write = (text: string) => `write \`${text}\``
export const writeInstead = (text: string, written: string) => `write \`${text}\` instead of \`${written}\``
export const add = (text: string) => `add \`${text}\``
export const REMOVE = 'remove it'

/** A hint for a custom field that is defined, and that an upsert finds records by. */
export const makeUnique = (entity: string, name: string): string =>
  `make it unique: PATCH /v1/custom-fields/${entity}/${name.slice(0, 100)} {"unique": true}, with the scope ${entity}:write`

export const notUnique = (entity: string, name: string): string =>
  `custom_fields.${name.slice(0, 100)} of ${entity} is not defined as unique: no record can be found by it`

/** A hint to define a custom field; authors of workflows need another scope for it. `entity`: the plural of a kind. */
export function defineField(
  entity: string,
  name: string,
  { type, unique }: { type?: string; unique?: boolean } = {},
): string {
  const shown = name.slice(0, 100)
  return `define it: POST /v1/custom-fields/${entity} {"name": "${shown}"${unique ? ', "unique": true' : ''}, "type": ${type === undefined ? '…' : `"${type}"`}}, with the scope ${entity}:write`
}
