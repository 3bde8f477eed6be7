import { type Kind, type KindName, referencesOf, userFields } from './kind.ts'
import { kindNames } from './kinds/index.ts'

/** What `expand` shows beside a record: a record or user that a field names, or the records that are associated. */
export type Expansion =
  | { is: 'record'; field: string; of: KindName }
  | { is: 'user'; field: string }
  | { is: 'associated'; of: KindName }

/** The maximum number of names in `expand`. */
export const MAX_EXPANDED = 5

/** The records of an associated kind that are shown with each record. */
export const MAX_ASSOCIATED = 10

/** The page size up to which associated records are shown: a page then has at most 2,500 of them. */
export const MAX_LIMIT_WITH_ASSOCIATED = 50

/** The expansions of a kind by name: `company`, `owner`, `contacts`. */
export function expansionsOf(kind: Kind): Map<string, Expansion> {
  return new Map<string, Expansion>([
    ...referencesOf(kind).map(([field, { to }]): [string, Expansion] => [
      nameOf(field),
      { is: 'record', field, of: to },
    ]),
    ...userFields(kind).map((field): [string, Expansion] => [nameOf(field), { is: 'user', field }]),
    ...kindNames.map((of): [string, Expansion] => [of, { is: 'associated', of }]),
  ])
}

const nameOf = (field: string) => field.replace(/_id$/, '')
