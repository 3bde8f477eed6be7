import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { fieldReader } from '../shared/field-reader.ts'
import { isObject } from '../shared/is-object.ts'
import { LIST } from '../shared/limits.ts'
import { nearest } from '../shared/nearest.ts'

/** Settings and values of nodes that work on lists. */

/** A list in memory. */
export const itemList = (what: string) =>
  z
    .array(z.unknown())
    .max(LIST.items, { error: `may have at most ${LIST.items} items` })
    .describe(`${what} At most ${LIST.items} items; usually a placeholder: \`{{ nodes.find.output.data }}\`.`)

/** The name of a field of the items. */
export const itemField = z
  .string()
  .min(1)
  .max(200)
  .describe('A field of the items; dots separate nested fields: `custom_fields.score`.')

/** The fields that the members `field` of a list name, each with its path. */
export const fieldsNamed = (
  list: unknown,
  pathOf: (index: number) => PropertyKey[],
): { field: string; path: PropertyKey[] }[] =>
  (Array.isArray(list) ? list : []).flatMap((one, index) =>
    isObject(one) && typeof one.field === 'string' ? [{ field: one.field, path: pathOf(index) }] : [],
  )

/** The names in the error for a field that no item has. */
const MAX_NAMED = 20

/**
 * Throws NodeError `missing_field` if no item of a list with items has a field: it is then most likely misspelt. A
 * custom field that no record has yet is no mistake.
 */
export function requireField(items: readonly unknown[], field: string): void {
  if (items.length === 0 || field.startsWith('custom_fields.')) return
  const read = fieldReader(field)
  if (items.some((item) => read(item) !== undefined)) return
  const names = [...new Set(items.slice(0, 100).flatMap((item) => (isObject(item) ? Object.keys(item) : [])))]
  const meant = nearest(field, names)
  const has =
    names.length === 0
      ? 'the items are no mappings'
      : `they have ${names.slice(0, MAX_NAMED).join(', ')}${names.length > MAX_NAMED ? ', …' : ''}`
  throw missingField(field, meant === undefined ? has : `did you mean ${meant}?`)
}

/** The error for a field that no item has. */
export const missingField = (field: string, hint: string): NodeError =>
  new NodeError('missing_field', `No item has the field ${field}: ${hint}`, { details: { field } })
