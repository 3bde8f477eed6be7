import { isObject } from './is-object.ts'
import { nearest } from './nearest.ts'

/** Names that are compared with a field. */
const MAX_ITEMS = 100

/**
 * The field that was most likely meant by one that no item of a list has: one with a near name, which items have.
 * Undefined if an item has the field, or none has a near one: then it is an optional field that is missing everywhere.
 */
export function meantField(items: readonly unknown[], field: string): string | undefined {
  const [key = ''] = field.split('.')
  if (items.some((item) => isObject(item) && Object.hasOwn(item, key))) return undefined
  const names = items.slice(0, MAX_ITEMS).flatMap((item) => (isObject(item) ? Object.keys(item) : []))
  return nearest(key, [...new Set(names)])
}
