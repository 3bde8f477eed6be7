import { limitOf, planLimitSql, type Subscription } from '../access/plans.ts'
import { AppError } from '../model/errors.ts'
import type { StoredKind } from '../model/storage/tables.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'

/**
 * How many bytes an organization stores. Nothing is counted in a request: the sweep measures the tables (measure.ts), and
 * in between a process adds the bytes that its transactions have sent (`SentBytes`). `organizations.storage_full` changes
 * only when the sum passes the limit, so that the look-up of a caller tells it without another read.
 */
export interface StorageUsage {
  /** The last measurement, and what was written since. */
  used: number
  /** Null if the plan sets none. */
  limit: number | null
  /** The last measurement by kind. */
  measured: Partial<Record<StoredKind, number>>
  measured_at: Date | null
}

/** SQL: sets whether the organizations of `used` (organization_id, bytes) are full. */
export const MARK_FULL = `update organizations o set storage_full = not o.storage_full from used
  where o.id = used.organization_id
    and o.storage_full is distinct from coalesce(used.bytes >= ${planLimitSql('storage_bytes')}, false)`

/** Adds bytes that were written since the last measurement. */
export async function addWritten(system: System, written: ReadonlyMap<string, number>): Promise<void> {
  await system.raw(
    `with used as (
       insert into organization_storage as s (organization_id, written)
       select o.id, w.bytes from unnest(cast(? as uuid[]), cast(? as bigint[])) as w(id, bytes)
         join organizations o on o.id = w.id
       on conflict (organization_id) do update set written = s.written + excluded.written
       returning organization_id, total + written as bytes
     ) ${MARK_FULL}`,
    [[...written.keys()], [...written.values()]],
  )
}

/** Compares the usage of all organizations with their limits, which a change of the plan has changed. */
export async function compareWithPlans(system: System): Promise<void> {
  await system.raw(
    `with used as (select organization_id, total + written as bytes from organization_storage) ${MARK_FULL}`,
  )
}

export async function getStorage(tx: Tenant): Promise<StorageUsage> {
  const row = await tx
    .trx('organizations as o')
    .leftJoin('organization_storage as s', 's.organization_id', 'o.id')
    .where('o.id', tx.organizationId)
    .first<
      Subscription & { total: number | null; written: number; measured: object; measured_at: Date | null }
    >('o.plan', 'o.limits', 's.total', 's.written', 's.measured', 's.measured_at')
  const limit = limitOf(row, 'storage_bytes')
  return {
    used: (row.total ?? 0) + (row.written ?? 0),
    limit: Number.isFinite(limit) ? limit : null,
    measured: row.measured ?? {},
    measured_at: row.measured_at,
  }
}

/** Seconds after which a client may try again: deletions are measured by then. */
const RETRY_SECONDS = 60

/** The error of a write of an organization that is full. */
export const storageExceeded = async (tx: Tenant): Promise<AppError> => exceededBy(await getStorage(tx))

/** The error of the next page of a long job, if the organization became full since it began. */
export async function fullError(tx: Tenant): Promise<AppError | undefined> {
  const full = await tx.trx('organizations').where({ id: tx.organizationId, storage_full: true }).first('id')
  return full && storageExceeded(tx)
}

/** Throws that error. */
export async function requireFreeStorage(tx: Tenant): Promise<void> {
  const error = await fullError(tx)
  if (error) throw error
}

export const exceededBy = ({ used, limit }: StorageUsage): AppError =>
  new AppError(
    'quota_exceeded',
    `the organization stores ${used} bytes, and its plan allows ${limit ?? 'any number'}`,
    {
      hint: 'delete what is no longer needed, shorten the retention, or change the plan: GET /app/usage shows what takes the most',
      retry_after: RETRY_SECONDS,
    },
  )
