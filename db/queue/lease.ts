import type { System } from '../postgres/tenancy.ts'

/** Leases on rows that are their own queue: the lease of a worker that died ends by itself, and others take the row. */

/** SQL: whether nobody has leased the row. */
export const isUnleased = (leaseUntil: string): string => `(${leaseUntil} is null or ${leaseUntil} < now())`

/** SQL: the end of a lease that begins or is renewed now. */
export const leaseEnd = (seconds: number): string => `now() + interval '${seconds} seconds'`

interface Claim {
  table: string
  /** The columns of its primary key. */
  key: string
  /** SQL: whether the row `r` waits for a worker. Has the condition of a partial index. */
  waits: string
  /** SQL: which rows come first. */
  order: string
  returning: string
  /** Longer than what the worker does with the rows. */
  seconds?: number
  leaseUntil?: string
}

/** Leases up to `limit` rows that wait. Claims at the same time take different rows. */
export async function leaseRows<Row>(
  system: System,
  limit: number,
  { table, key, waits, order, returning, seconds = 10, leaseUntil = 'lease_until' }: Claim,
): Promise<Row[]> {
  const { rows } = await system.raw<{ rows: Row[] }>(
    `update ${table} set ${leaseUntil} = ${leaseEnd(seconds)}
     where (${key}) in (
       select ${key} from ${table} r where ${waits} and ${isUnleased(leaseUntil)}
       order by ${order} limit ? for no key update skip locked)
     returning ${returning}`,
    [limit],
  )
  return rows
}

/** Ends the leases of these rows. */
export async function endLeases(
  system: System,
  table: string,
  rows: { organization_id: string; id: string }[],
): Promise<void> {
  const keys = rows.map(({ organization_id, id }) => [organization_id, id])
  await system(table).whereIn(['organization_id', 'id'], keys).update({ lease_until: null })
}
