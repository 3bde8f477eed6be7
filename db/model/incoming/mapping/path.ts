import { TEXT } from '../parse-body.ts'

/**
 * The value at a dotted path, `payload.fields[0].value`, or undefined. Reads own members only. For an XML element with
 * attributes it is the text; the attributes have their own paths, `payload.email.type`.
 */
export function valueAt(root: unknown, path: string): unknown {
  let value = root
  for (const step of stepsOf(path)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return withoutAttributes(value)
}

/** The steps of a dotted path, or of JSONPath in its simple form: `$.a['b c'][0]`. */
export const stepsOf = (path: string): string[] =>
  isJsonPath(path)
    ? [...path.slice(1).matchAll(STEP)].map(([, quoted, single, bare]) => quoted ?? single ?? bare!)
    : path
        .replace(/\[(\d+)\]/g, '.$1')
        .split('.')
        .filter(Boolean)

const isJsonPath = (path: string) => /^\$(?=[.[]|$)/.test(path)
const STEP = /\["([^"]*)"\]|\['([^']*)'\]|[.[]([^.[\]]+)\]?/g

/** Whether a path is JSONPath with more than members and indexes, which no value matches. */
export const isUnsupportedPath = (path: string): boolean =>
  isJsonPath(path) && (/\.\.|\*|\[\?|\[[^\]]*[:,]|\[-|[.[]$/.test(withoutQuotes(path)) || path === '$')

const withoutQuotes = (path: string) => path.replace(/\["[^"]*"\]|\['[^']*'\]/g, '[0]')

/** The text of an XML element with attributes; any other value unchanged. */
function withoutAttributes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutAttributes)
  return Object.hasOwn(Object(value), TEXT) ? (value as Record<string, unknown>)[TEXT] : value
}

/** The value at a path as trimmed text; empty if it is missing or not a scalar. */
export function textAt(root: unknown, path: string): string {
  const value = valueAt(root, path)
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value).trim() : ''
}
