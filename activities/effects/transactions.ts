import type { Database } from '../../db/postgres/connect.ts'
import { isStatementTimeout } from '../../db/postgres/sql-state.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { isTransient } from '../faults.ts'
import { whenAvailable } from '../when-available.ts'
import type { EffectHost } from './define.ts'

/**
 * Transactions of a node that calls other services, each of the organization, which cannot see the data of others. They
 * wait for a database that is away, as the transactions of the attempt itself do; one that takes too long is the error of
 * the node.
 */
export function transactionsOf(
  db: Database | undefined,
  { organizationId, runId, log, signal, hold }: EffectHost,
): <T>(work: (tx: Tenant) => Promise<T>) => Promise<T> {
  const waitsFor = (error: unknown) => isTransient(error) && !isStatementTimeout(error)
  return async (work) => {
    if (!db) throw new Error('this process reads nothing for other services')
    return whenAvailable({ log, signal, hold, waitsFor }, () =>
      db.tenant(organizationId, { type: 'workflow_run', id: runId }, work),
    )
  }
}
