import type { Knex } from 'knex'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { transaction } from '../postgres/transaction.ts'

/** Serialises claims on a capacity-limited queue. The lock is held until its transaction ends. */
const keyOf = (queue: string) => `agx claim ${queue}`

/** Takes the lock in the message of the transaction's next statement, so that it is not held for a round trip more. */
export const lockClaimsNext = (tx: Tenant, queue: string): void =>
  tx.later({
    sql: 'select pg_advisory_xact_lock(hashtext(key)) from jsonb_array_elements_text(?) key',
    rows: [JSON.stringify(keyOf(queue))],
    bindings: [],
  })

/**
 * SQL: takes the lock if it is free, once per statement; whether this transaction has it. The snapshot of the statement
 * is older than the lock: only for a statement that locks its rows, which reads them again.
 */
export const takesLock = (queue: string): string =>
  `(select pg_try_advisory_xact_lock(hashtext('${keyOf(queue)}')))`

/** SQL: a condition of a claim, false if another relay holds the lock. Every claim has it where it reads its queue. */
export const HAS_LOCK = `(select current_setting('app.has_lock') = 'true')`

/**
 * Claims rows of a queue by `sql`, one relay at a time, so that concurrency limits are exact. Lock and claim are two
 * statements: the claim must see the commit of the previous lock holder. They are sent together, and the commit does not
 * wait for the disk: a claim that a crash of PostgreSQL has lost is made again, and "already started" is success.
 * @returns no rows if another relay holds the lock.
 */
export function claimAlone<Row>(
  system: System,
  queue: string,
  sql: string,
  bindings: Record<string, Knex.Value>,
): Promise<Row[]> {
  if (!sql.includes(HAS_LOCK)) throw new Error(`the claim of ${queue} ignores its lock`)
  const first = `SET LOCAL synchronous_commit = off;
    SELECT set_config('app.has_lock', cast(${takesLock(queue)} as text), true)`
  return transaction(
    system,
    undefined,
    async ({ trx }) => {
      const { rows } = await trx.raw<{ rows: Row[] }>(sql, bindings)
      return rows
    },
    { first, oneStatement: true },
  )
}
