import { AppError, type Issue, invalid } from '../model/errors.ts'
import type { KindName } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type ListQuery, listRecords } from './list.ts'

/** The records of a list and their order, without the page. */
export type Selection = Pick<ListQuery, 'sort' | 'order' | 'q' | 'match' | 'filters' | 'time_zone'>

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
