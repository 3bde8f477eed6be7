import type { Database } from '../../db/postgres/connect.ts'
import { PURGES } from '../../db/retention/purges.ts'
import { purgeBatch } from '../../db/retention/run.ts'

/** Runs every purge to its end. @returns the number of deleted rows, by purge. */
export async function purgeAll(db: Database): Promise<Record<string, number>> {
  const deleted: Record<string, number> = {}
  for (const purge of PURGES) {
    deleted[purge.name] = 0
    for (let batch = await purgeBatch(db.system, purge); ; ) {
      deleted[purge.name]! += batch.deleted
      if (!batch.more) break
      batch = await purgeBatch(db.system, purge, batch.position)
    }
  }
  return deleted
}

/** SQL: the UUIDv7 in `column` with a time that many days earlier. */
export const olderId = (column: string, days: number): string => {
  const hex = `replace(${column}::text, '-', '')`
  const time = `('x0000' || left(${hex}, 12))::bit(64)::bigint - ${days * 86_400_000}`
  return `(lpad(to_hex(${time}), 12, '0') || substr(${hex}, 13))::uuid`
}
