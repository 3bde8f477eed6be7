import type { AlternateKey } from '../model/records/alternate-keys.ts'
import type { KindName } from '../model/records/kind.ts'
import { lookupKey } from '../model/records/upsert-keys.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * Keeps the alternate keys of a merge for look-ups, and moves those of the loser. The trigger of the kind's table
 * refuses an `external_id` that another record has as an alternate key.
 */
export async function keepKeys(
  tx: Tenant,
  entity: KindName,
  { winnerId, loserId, keys }: { winnerId: string; loserId: string; keys: AlternateKey[] },
): Promise<void> {
  const table = () => tx.trx('alternate_keys')
  const organization_id = tx.organizationId
  await table().where({ organization_id, record_id: loserId }).delete()
  if (keys.length === 0) return
  await table()
    .insert(
      keys.map(({ field, value }) => ({
        organization_id,
        entity,
        field,
        key: lookupKey(field, value),
        record_id: winnerId,
      })),
    )
    .onConflict()
    .ignore()
}
