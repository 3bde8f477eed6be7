import type { Tenant } from '../postgres/tenancy.ts'
import { recordNotFound } from './merged.ts'
import { present, shownColumns } from './model/columns.ts'
import type { EntityName } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import type { AgxRecord } from './model/schemas.ts'

/** Throws `not_found`. */
export async function getRecord(tx: Tenant, entity: EntityName, id: string): Promise<AgxRecord> {
  const record = await findRecord(tx, entity, id)
  if (!record) throw await recordNotFound(tx, entities[entity], id)
  return record
}

/** Reads a record in one statement; undefined if it does not exist or is deleted. */
export async function findRecord(tx: Tenant, entity: EntityName, id: string): Promise<AgxRecord | undefined> {
  const kind = entities[entity]
  const row = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId, id })
    .whereNull('deleted_at')
    .first(shownColumns(kind))
  return row && present(kind, row)
}
