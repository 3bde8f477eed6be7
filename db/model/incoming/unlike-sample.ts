import { isObject } from '../../../workflows/shared/is-object.ts'

/** What a payload has at the place where a path ends too early. */
export interface Missing {
  /** The keys before the one that is missing. */
  before: (string | number)[]
  key: string | number
  /** What there is instead: `a text`; undefined if it is a mapping. */
  what?: string
  /** The names that the mapping has, or the first item of the list. */
  names: string[]
  isList?: true
}

/** What can be read of lists and texts. */
const OF_LISTS = ['first', 'last', 'size']

/**
 * Follows a path into a sample. Undefined if it leads to a value, or if the sample does not tell: null can be anything
 * another time, and a list can have other items.
 */
export function missingIn(payload: unknown, keys: readonly (string | number)[]): Missing | undefined {
  let value = payload
  for (const [index, key] of keys.entries()) {
    if (value === null || value === undefined) return undefined
    const before = keys.slice(0, index)
    if (Array.isArray(value)) {
      if (!OF_LISTS.includes(String(key)) && !/^-?\d+$/.test(String(key)))
        return { before, key, what: 'a list', names: namesOf(value[0]), isList: true }
      if (key === 'size') return undefined
      value = value[0]
    } else if (isObject(value)) {
      if (!Object.hasOwn(value, key))
        return key === 'size' ? undefined : { before, key, names: namesOf(value) }
      value = value[key]
    } else {
      if (typeof value === 'string' && key === 'size') return undefined
      return { before, key, what: WHAT[typeof value] ?? 'a value', names: [] }
    }
  }
  return undefined
}

const WHAT: Record<string, string> = { string: 'a text', number: 'a number', boolean: 'a boolean' }

const namesOf = (value: unknown) => (isObject(value) ? Object.keys(value) : [])
