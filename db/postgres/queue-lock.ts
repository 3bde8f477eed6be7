import type { Knex } from 'knex'

/** Held until its transaction ends by whoever gives out places of a queue that has only so many. */
const keyOf = (queue: string) => `agx claim ${queue}`

/** Waits for it. */
export async function lockClaims(trx: Knex, queue: string): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(hashtext(?))', [keyOf(queue)])
}

/** @returns false where another one has it. */
export async function tryLockClaims(trx: Knex, queue: string): Promise<boolean> {
  const { rows } = await trx.raw('select pg_try_advisory_xact_lock(hashtext(?)) as mine', [keyOf(queue)])
  return rows[0].mine
}
