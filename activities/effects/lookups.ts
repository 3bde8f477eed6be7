import { AppError, fullMessage } from '../../db/model/errors.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Lookups } from '../../workflows/effects/lookups.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import type { EffectHost } from './define.ts'
import { recordsIn } from './records.ts'
import { transactionsOf } from './transactions.ts'

/** Each read is a transaction of the organization. */
export function lookupsOf(db: Database | undefined, host: EffectHost): Lookups {
  const transact = transactionsOf(db, host)
  const read = async <T>(work: (tx: Tenant) => Promise<T>): Promise<T> => {
    try {
      return await transact(work)
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
