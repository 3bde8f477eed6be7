import type { AppError } from '../../model/errors.ts'
import type { KindName } from '../../model/records/kind.ts'
import { savepoint, type Tenant } from '../../postgres/tenancy.ts'
import { settle } from '../sets.ts'

/** A record of a job. */
export interface BulkItem {
  entity: KindName
  record_id: string
  step: number
}

/** The next records of a job, and where the listing goes on: null at its end. */
export interface Listed {
  items: BulkItem[]
  cursor: string | null
}

/** Undefined: the record was changed, or had the values already. */
export type BulkOutcome = AppError | undefined

/** Runs the change of one record in a savepoint. @returns the error that it throws. */
export async function alone(tx: Tenant, work: (tx: Tenant) => Promise<unknown>): Promise<BulkOutcome> {
  const outcome = await settle(() => savepoint(tx, work))
  return outcome !== null && typeof outcome === 'object' && 'error' in outcome
    ? (outcome.error as AppError)
    : undefined
}
