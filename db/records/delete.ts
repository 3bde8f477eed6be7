import { requireVersion } from '../model/lists/version.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { nextVersion } from '../model/records/prepare.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { freeUnique } from './custom-fields/unique.ts'
import { lockLives, lockRecord, lockReferencesTo } from './lock.ts'
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
 * Soft-deletes a record: until it is restored, it is in no list, and no reference points to it. Throws `not_found`,
 * `version_conflict`.
 */
export async function deleteRecord(
  tx: Tenant,
  kind: KindName,
  id: string,
  { ifVersion }: Pick<Update, 'ifVersion'> = {},
): Promise<Deleted> {
  const definition = kinds[kind]
  // Sent together.
  await Promise.all([lockLives(tx), lockReferencesTo(tx, kind, [id])])
  const before = await lockRecord(tx, kind, id, 'for update')
  requireVersion(definition.object, before.version, ifVersion)
  await clearReferencesTo(tx, kind, id)
  const write = nextVersion('deleted', tx.actor, before)
  await Promise.all([writeRecords(tx, definition, [write]), freeUnique(tx, id)])
  return { id, object: definition.object, deleted: true, deleted_at: String(write.record.updated_at) }
}
