import { stepsOf } from '../../../../workflows/shared/paths.ts'
import { TEXT } from '../parse-body.ts'

/**
 * The value at a path, or undefined: `payload.fields[0].value`, `form["1.3"]`, the same as JSONPath with `$` before it.
 * Also a top-level member with the whole text as its name. Reads own members only. For an XML element with attributes it
 * is the text; the attributes have their own paths, `payload.email.type`.
 */
export function valueAt(root: unknown, path: string): unknown {
  if (Object.hasOwn(Object(root), path)) return withoutAttributes((root as Record<string, unknown>)[path])
  let value = root
  for (const step of stepsOf(path)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return withoutAttributes(value)
}

/** The path of a member of what is at a path. */
export function memberPath(path: string, name: string): string {
  if (/^[^.[\]"'$*?][^.[\]*]*$/.test(name)) return path ? `${path}.${name}` : name
  return `${path}[${name.includes('"') ? `'${name}'` : `"${name}"`}]`
}

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
