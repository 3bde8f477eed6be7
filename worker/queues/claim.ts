import type { Knex } from 'knex'
import { tryLockClaims } from '../../db/postgres/queue-lock.ts'
import { transaction } from '../../db/postgres/transaction.ts'

/**
 * Claims rows of a queue by `sql`, one relay at a time, so that limits of what may run at once hold exactly. Where
 * another one is at it there is nothing to claim. Lock and statement are apart: the statement must see what whoever
 * had the lock before has committed.
 */
export function claimAlone<Row>(
  db: Knex,
  queue: string,
  sql: string,
  bindings: Record<string, Knex.Value>,
): Promise<Row[]> {
  return transaction(db, undefined, async ({ trx, last }) => {
    if (!(await tryLockClaims(trx, queue))) return []
    last()
    const { rows } = await trx.raw<{ rows: Row[] }>(sql, bindings)
    return rows
  })
}
