import { type KindName, kindNames, RECORD_KINDS } from './record-kinds.ts'

/** Filters that read records of another kind than the listed one. */

const PREFIX = 'associations.'

/** `associations.deals`, and so on: filters by the records that a record is associated with. */
export const ASSOCIATION_FIELDS: readonly string[] = kindNames.map((kind) => `${PREFIX}${kind}`)

/** The kind in `associations.<kind>`; undefined for other fields. */
export function associatedKind(field: string): KindName | undefined {
  return kindNames.find((kind) => field === PREFIX + kind)
}

/** A field of other records as a filter, one hop away. */
export interface Hop {
  /** The kind of the other records, and their field. */
  kind: KindName
  field: string
  /** The field that refers to the other record; undefined for any record of the kind that is associated. */
  reference: string | undefined
}

/**
 * Reads `company.industry`, a field of the record that `company_id` refers to, or `associations.deals.stage`, a field of
 * some associated record. Undefined for other fields.
 */
export function hopOf(field: string): Hop | undefined {
  const [, name = '', rest = ''] = /^((?:associations\.)?[a-z_]+)\.(.+)$/.exec(field) ?? []
  if (rest === '') return undefined
  const associated = associatedKind(name)
  if (associated) return { kind: associated, field: rest, reference: undefined }
  const referred = kindNames.find((kind) => `_${name}`.endsWith(`_${RECORD_KINDS[kind]}`))
  return referred && { kind: referred, field: rest, reference: `${name}_id` }
}

/** The time of the last activity of a record: the latest of its completed activities that has occurred. */
export const LAST_ACTIVITY = 'last_activity_at'

/** The kinds whose records have activities. */
export const WITH_ACTIVITIES: readonly KindName[] = ['contacts', 'companies', 'deals']

/** The imports that created or changed a record, by its history. */
export const IMPORT_ID = 'import_id'

/** The lists that a record is in. */
export const LIST_ID = 'list_id'

/** The kind that a filter field reads besides its own: callers need the scope to read it. */
export const kindReadBy = (field: string): KindName | undefined =>
  field === LAST_ACTIVITY ? 'activities' : (associatedKind(field) ?? hopOf(field)?.kind)
