import type { Tenant } from './tenancy.ts'

/** Of these users, those that are members of the organization. */
export async function membersAmong(tx: Tenant, userIds: string[]): Promise<Set<string>> {
  const rows = await tx
    .trx('memberships')
    .where({ organization_id: tx.organizationId })
    .whereIn('user_id', userIds)
    .select<{ user_id: string }[]>('user_id')
  return new Set(rows.map((row) => row.user_id))
}
