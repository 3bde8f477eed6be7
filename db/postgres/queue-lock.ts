import type { Knex } from 'knex'
import type { System } from './tenancy.ts'
import { transaction } from './transaction.ts'

/** Serialises claims on a capacity-limited queue. The lock is held until its transaction ends. */
const keyOf = (queue: string) => `agx claim ${queue}`

/** Waits for the lock. */
export async function lockClaims(trx: Knex, queue: string): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(hashtext(?))', [keyOf(queue)])
}

/**
 * SQL: takes the lock if it is free, once per statement; whether this transaction has it. The snapshot of the statement is
 * older than the lock: only for a statement that locks its rows, which reads them again.
 */
export const takesLock = (queue: string): string =>
  `(select pg_try_advisory_xact_lock(hashtext('${keyOf(queue)}')))`

/**
 * Claims rows of a queue by `sql`, one relay at a time, so that concurrency limits are exact. Lock and claim are two
 * statements: the claim must see the commit of the previous lock holder.
 * @returns no rows if another relay holds the lock.
 */
export function claimAlone<Row>(
  system: System,
  queue: string,
  sql: string,
  bindings: Record<string, Knex.Value>,
): Promise<Row[]> {
  return transaction(system, undefined, async ({ trx, last }) => {
    if (!(await tryLock(trx, keyOf(queue)))) return []
    last()
    const { rows } = await trx.raw<{ rows: Row[] }>(sql, bindings)
    return rows
  })
}

async function tryLock(trx: Knex, key: string): Promise<boolean> {
  const { rows } = await trx.raw('select pg_try_advisory_xact_lock(hashtext(?)) as locked', [key])
  return rows[0].locked
}
