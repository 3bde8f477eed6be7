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
    if (!(await tryLockClaims(trx, queue))) return []
    last()
    const { rows } = await trx.raw<{ rows: Row[] }>(sql, bindings)
    return rows
  })
}

/** Takes the lock if it is free. @returns whether this transaction has it. */
export async function tryLockClaims(trx: Knex, queue: string): Promise<boolean> {
  const { rows } = await trx.raw('select pg_try_advisory_xact_lock(hashtext(?)) as locked', [keyOf(queue)])
  return rows[0].locked
}
