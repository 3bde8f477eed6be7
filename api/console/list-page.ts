import type { View } from './route.ts'

/** The page size of the lists of the console. */
const LIMIT = 50

/**
 * The address of a list of the API for the parameters of a page: its cursor, and those that `names` lists. Empty fields
 * of a filter are left out.
 */
export function pageOf({ query }: Pick<View, 'query'>, path: string, names: readonly string[] = []): string {
  const sent = new URLSearchParams({ limit: String(LIMIT) })
  for (const [name, value] of query)
    if (value !== '' && (name === 'cursor' || names.includes(name))) sent.append(name, value)
  return `${path}${path.includes('?') ? '&' : '?'}${sent}`
}
