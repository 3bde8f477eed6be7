import { TEXT } from '../parse-body.ts'

/**
 * The value at a dotted path, `payload.fields[0].value`; undefined where there is none. Own members only. Of an XML
 * element that has attributes it is the text, as if it had none; they are at paths of their own, `payload.email.type`.
 */
export function valueAt(root: unknown, path: string): unknown {
  let value = root
  for (const step of path
    .replace(/\[(\d+)\]/g, '.$1')
    .split('.')
    .filter(Boolean)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return withoutAttributes(value)
}

/** What an element says: its text, where it has one beside its attributes. */
export function withoutAttributes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutAttributes)
  return Object.hasOwn(Object(value), TEXT) ? (value as Record<string, unknown>)[TEXT] : value
}

/** The same as text, trimmed; empty where there is none, or what is there is no single value. */
export function textAt(root: unknown, path: string): string {
  const value = valueAt(root, path)
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value).trim() : ''
}
