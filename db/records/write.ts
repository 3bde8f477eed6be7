import { keyTaken } from '../model/records/key-taken.ts'
import type { Kind } from '../model/records/kind.ts'
import type { Write } from '../model/records/prepare.ts'
import { sqlState, UNIQUE_VIOLATION } from '../postgres/sql-state.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { changedSums } from './sums.ts'
import { sendWrites } from './write-statement.ts'

/**
 * Writes records of one kind, all new or all changed, with their histories and events, and the sums that depend on them.
 * `except`: records whose sums stay, because they are deleted or merged next. If it throws, the transaction or savepoint
 * must be rolled back. Throws `conflict` if an external_id or the `identity` is taken.
 */
export async function writeRecords(
  tx: Tenant,
  kind: Kind,
  writes: Write[],
  except?: readonly string[],
): Promise<void> {
  await sendWrites(tx, kind, writes).catch((error: unknown) => {
    // The error does not name the record: `inSets` then writes each record alone.
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
    throw keyTaken(
      kind,
      writes.map(({ record }) => record),
      error,
    )
  })
  const sums = await changedSums(tx, kind, writes, except)
  // No part of the job: its undo takes away what is summed, and that changes the sums.
  if (sums) await sendWrites({ ...tx, job: undefined }, sums.kind, sums.writes)
}
