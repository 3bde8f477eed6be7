import { AppError, conflict, type Issue, invalid } from '../model/errors.ts'
import { applyTypes, kindsWithCustomFields, type QueryRules } from '../model/records/custom-fields/filters.ts'
import type { CustomFieldType } from '../model/records/custom-fields/types.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { sortsOf } from '../model/records/sorts.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { type ListQuery, listRecords } from './list.ts'
import { type Comparison, comparisonOf } from './with-rates.ts'

/** The records of a list and their order, without the page. */
export type Selection = Pick<ListQuery, 'sort' | 'order' | 'q' | 'match' | 'filters' | 'time_zone' | 'rates'>

/**
 * Executes the list once: only it can check the selection against the types of custom fields. Throws
 * `validation_error` with issues of the body.
 */
export async function checkSelection(tx: Tenant, entity: KindName, selection: Selection): Promise<void> {
  try {
    await listRecords(tx, entity, { ...selection, limit: 1, offset: 0, count: 'none' })
  } catch (error) {
    if (!(error instanceof AppError) || !error.details.issues) throw error
    throw invalid(error.details.issues.map((issue): Issue => ({ ...issue, loc: ['body', ...issue.loc] })))
  }
}

/** The rates by which a selection compares amounts now, for a job that lists it in several transactions. */
export const ratesOfSelection = (
  tx: Tenant,
  entity: KindName,
  selection: Selection,
): Promise<Comparison | null> =>
  comparisonOf(tx, kinds[entity], {
    filters: selection.filters,
    sorts: sortsOf(selection),
    match: selection.match,
  })

/** The type of the custom field of each filter, and of the sort; null: no custom field, or one without a definition. */
export type FieldTypes = (CustomFieldType | null)[]

/** Reads the types of the custom fields of a selection, and locks them until the transaction ends. */
export async function lockFieldTypes(
  tx: Tenant,
  entity: KindName,
  selection: Selection,
): Promise<FieldTypes> {
  const named = kindsWithCustomFields(kinds[entity], selection)
  if (named.length === 0) return []
  const definitions: QueryRules['definitions'] = {}
  // Shared locks: definitions of two kinds are never changed in one transaction.
  for (const kind of named) definitions[kind] = (await lockFieldRules(tx, kind)).definitions
  const { filters, sortTypes } = applyTypes(kinds[entity], { definitions }, selection)
  return [...filters.map(({ type }) => type), ...sortTypes].map((type) => type ?? null)
}

/**
 * Throws `conflict` if the custom fields of a selection no longer have these types: its filters would select other
 * records. Locks the types until the transaction ends.
 */
export async function requireFieldTypes(
  tx: Tenant,
  entity: KindName,
  selection: Selection,
  types: FieldTypes,
): Promise<void> {
  const now = await lockFieldTypes(tx, entity, selection)
  if (now.some((type, i) => type !== types[i]))
    throw conflict(
      'a custom field of the query was deleted, defined or given another type before all records were listed',
    )
}
