import { requireVersion } from '../lists/version.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { freeUnique } from './custom-fields/unique.ts'
import { lockRecord, lockReferencesTo } from './lock.ts'
import type { EntityName } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import type { AgxRecord } from './model/schemas.ts'
import { clearReferencesTo } from './primaries.ts'
import type { Update } from './update.ts'
import { writeRecords } from './write.ts'

export interface Deleted {
  id: string
  object: string
  deleted: true
  deleted_at: string
}

/**
 * Soft: until it is restored, no list shows the record and nothing refers to it. Throws `not_found`,
 * `version_conflict`.
 */
export async function deleteRecord(
  tx: Tenant,
  entity: EntityName,
  id: string,
  { ifVersion }: Pick<Update, 'ifVersion'> = {},
): Promise<Deleted> {
  const kind = entities[entity]
  await lockReferencesTo(tx, entity, id)
  const before = await lockRecord(tx, entity, id, 'for update')
  requireVersion(kind.object, before.version, ifVersion)
  const at = new Date().toISOString()
  await clearReferencesTo(tx, entity, id)
  const record = { ...before, version: before.version + 1, updated_at: at, updated_by: tx.actor } as AgxRecord
  await Promise.all([
    writeRecords(tx, kind, [{ action: 'deleted', record, changes: {} }]),
    freeUnique(tx, id),
  ])
  return { id, object: kind.object, deleted: true, deleted_at: at }
}
