import type { System } from '../postgres/tenancy.ts'
import { transaction } from '../postgres/transaction.ts'
import type { Batch, Position, Purge } from './purge.ts'

/** The state of one pass of a purge. */
export interface PurgePass {
  deleted: number
  position?: Position | undefined
  /** Epoch milliseconds; undefined while the pass is in progress. */
  endedAt?: number
}

/** Bounds the time of a batch, which normally takes some 50 ms, and so the time that others wait for its locks. */
const TIMEOUT_MS = 5_000

/** Runs one batch in its own transaction. */
export function purgeBatch(system: System, purge: Purge, position?: Position): Promise<Batch> {
  return transaction(system, undefined, async ({ trx }) => {
    await trx.raw(`set local statement_timeout = ${TIMEOUT_MS}`)
    return purge.batch(trx, purge.rows, position)
  })
}
