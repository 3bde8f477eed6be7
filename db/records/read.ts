import { present, shownColumns } from '../model/records/columns.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { recordNotFound } from './merged.ts'

/** Throws `not_found`. */
export async function getRecord(tx: Tenant, kind: KindName, id: string): Promise<AgxRecord> {
  const record = await findRecord(tx, kind, id)
  if (!record) throw await recordNotFound(tx, kinds[kind], id)
  return record
}

/** Reads a record in one statement; undefined if it does not exist or is deleted. */
export async function findRecord(tx: Tenant, kind: KindName, id: string): Promise<AgxRecord | undefined> {
  const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(FIND[kind], [tx.organizationId, id])
  return rows[0] && present(kinds[kind], rows[0])
}

/** Reads records by their ids; those that do not exist or are deleted are absent. */
export async function readRecords(
  tx: Tenant,
  kind: KindName,
  ids: string[],
): Promise<Map<string, AgxRecord>> {
  const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(
    FIND[kind].replace('and id = ?', 'and id = any(?)'),
    [tx.organizationId, ids] as never,
  )
  return new Map(rows.map((row) => [row.id as string, present(kinds[kind], row)]))
}

/** Built once: Knex takes twice the CPU time to list the columns of a record. */
const FIND = Object.fromEntries(
  Object.entries(kinds).map(([entity, kind]) => [
    entity,
    `select ${shownColumns(kind).map((column) => `"${column}"`)} from ${entity}
     where organization_id = ? and id = ? and deleted_at is null`,
  ]),
) as Record<KindName, string>
