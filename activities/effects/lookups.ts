import { AppError, fullMessage } from '../../db/model/errors.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { isStatementTimeout } from '../../db/postgres/sql-state.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Lookups } from '../../workflows/effects/lookups.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { isTransient } from '../faults.ts'
import { whenAvailable } from '../when-available.ts'
import type { EffectHost } from './define.ts'
import { recordsIn } from './records.ts'

/**
 * Each read is a transaction of the organization, which cannot see the data of others. It waits for a database that is
 * away, as the transactions of the attempt itself do; a read that takes too long is the error of the node.
 */
export function lookupsOf(
  db: Database | undefined,
  { organizationId, runId, log, signal, hold }: EffectHost,
): Lookups {
  const waitsFor = (error: unknown) => isTransient(error) && !isStatementTimeout(error)
  const read = async <T>(work: (tx: Tenant) => Promise<T>): Promise<T> => {
    if (!db) throw new Error('this process reads no records for other services')
    try {
      return await whenAvailable({ log, signal, hold, waitsFor }, () =>
        db.tenant(organizationId, { type: 'workflow_run', id: runId }, work),
      )
    } catch (error) {
      if (error instanceof AppError) throw new NodeError(error.type, fullMessage(error))
      throw error
    }
  }
  return {
    offer: async () => {},
    get: (entity, id) => read((tx) => recordsIn(tx).get(entity, id)),
    search: (entity, query) => read((tx) => recordsIn(tx).search(entity, query)),
    listRelated: (entity, id, target, limit) =>
      read((tx) => recordsIn(tx).listRelated(entity, id, target, limit)),
  }
}
