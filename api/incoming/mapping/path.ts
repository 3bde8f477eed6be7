/** The value at a dotted path, `payload.fields[0].value`; undefined where there is none. Own members only. */
export function valueAt(root: unknown, path: string): unknown {
  let value = root
  for (const step of path
    .replace(/\[(\d+)\]/g, '.$1')
    .split('.')
    .filter(Boolean)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return value
}

/** The same as text, trimmed; empty where there is none, or what is there is no single value. */
export function textAt(root: unknown, path: string): string {
  const value = valueAt(root, path)
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value).trim() : ''
}
