import type { Tenant } from '../tenancy.ts'
import type { Deduplication } from './types.ts'

/**
 * The id of the oldest record with this key, if there is one. Holds the key until the transaction ends, so that of
 * equal payloads that come at once the second finds what the first has made.
 */
export async function findOldest(
  tx: Tenant,
  entity: 'contacts' | 'companies',
  by: Deduplication['by'],
  value: string,
): Promise<string | undefined> {
  const key = value.toLowerCase()
  await tx.trx.raw(
    "select pg_advisory_xact_lock(hashtextextended(concat_ws(' ', ?::text, ?::text, ?::text, ?::text), 0))",
    [tx.organizationId, entity, by, key],
  )
  return oldest(tx, entity, by, key)
}

/** The same for a company's name. */
export async function findOldestCompany(tx: Tenant, name: string): Promise<string | undefined> {
  const key = name.toLowerCase()
  await tx.trx.raw(
    "select pg_advisory_xact_lock(hashtextextended(concat_ws(' ', ?::text, 'companies name', ?::text), 0))",
    [tx.organizationId, key],
  )
  return oldest(tx, 'companies', 'name', key)
}

async function oldest(
  tx: Tenant,
  entity: 'contacts' | 'companies',
  column: 'email' | 'external_id' | 'name',
  key: string,
): Promise<string | undefined> {
  const row = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId, deleted_at: null })
    .whereRaw('lower(??) = ?', [column, key])
    .orderBy('created_at')
    .orderBy('id')
    .first<{ id: string } | undefined>('id')
  return row?.id
}
