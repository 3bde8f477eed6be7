import { isObject } from './is-object.ts'

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
