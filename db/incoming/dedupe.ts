import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The id of the oldest company of this name, whatever its case. Holds the name until the transaction ends, so that of
 * equal payloads that come at once the second finds what the first has made.
 */
export async function findOldestCompany(tx: Tenant, name: string): Promise<string | undefined> {
  const key = name.toLowerCase()
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `${tx.organizationId} companies name ${key}`,
  ])
  const row = await tx
    .trx('companies')
    .where({ organization_id: tx.organizationId, name_lower: key, deleted_at: null })
    .orderBy([{ column: 'created_at' }, { column: 'id' }])
    .first<{ id: string } | undefined>('id')
  return row?.id
}
