import { z } from 'zod'
import { isObject } from '../shared/is-object.ts'
import { LIST } from '../shared/limits.ts'

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

/** The reader of a field; undefined for an item that does not have it. Without a name: the item itself. */
export function fieldReader(field: string | undefined): (item: unknown) => unknown {
  if (field === undefined) return (item) => item
  const path = field.split('.')
  return (item) => {
    let value = item
    for (const key of path) {
      if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
      value = value[key]
    }
    return value
  }
}
