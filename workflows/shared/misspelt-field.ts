import { isObject } from './is-object.ts'
import { nearest } from './nearest.ts'

/** The items whose names are compared with a field. */
const MAX_ITEMS = 100

/**
 * The field that was almost certainly meant by one that no item of a list has: one that differs by one letter, or two
 * exchanged ones, or by case. Undefined if an item has the field, or none has such a one: then it is an optional field
 * that is missing everywhere. `line1` and `line2`, `state` and `stage`, and short names are fields of their own.
 */
export function meantField(items: readonly unknown[], field: string): string | undefined {
  const [key = ''] = field.split('.')
  if (items.some((item) => isObject(item) && Object.hasOwn(item, key))) return undefined
  const names = items.slice(0, MAX_ITEMS).flatMap((item) => (isObject(item) ? Object.keys(item) : []))
  const others = [...new Set(names)].filter((name) => !differByDigits(name, key) && !isOtherWord(name, key))
  return nearest(key, others, key.length < SHORT ? 0 : 1)
}

/** One letter makes another word of a shorter name, such as `to` and `no`. */
const SHORT = 4
/** In a shorter name, another letter or an exchanged pair makes another word, such as `state` and `stage`. */
const LONG = 6

const isOtherWord = (a: string, b: string) =>
  b.length < LONG && a.length === b.length && a.toLowerCase() !== b.toLowerCase()

function differByDigits(a: string, b: string): boolean {
  const letters = (text: string) => text.replace(/\d/g, '')
  return letters(a) === letters(b)
}
