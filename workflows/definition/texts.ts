/** A text in a value, and the keys and indexes that lead to it. */
export interface PlacedText {
  text: string
  path: PropertyKey[]
}

/** Every text in a value: in a mapping only the values, not the keys. */
export function textsIn(value: unknown, path: PropertyKey[] = []): PlacedText[] {
  if (typeof value === 'string') return [{ text: value, path }]
  if (Array.isArray(value)) return value.flatMap((item, index) => textsIn(item, [...path, index]))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => textsIn(member, [...path, key]))
}
