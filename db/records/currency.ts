import type { Tenant } from '../tenancy.ts'
import type { Kind } from './kind.ts'

/** Money without a currency is in the organization's. @returns the field to set, where one is missing. */
export async function defaultCurrency(
  tx: Tenant,
  kind: Kind,
  values: Record<string, unknown>,
): Promise<{ currency?: string }> {
  const money = Object.entries(kind.fields).some(
    ([name, { type }]) => type === 'money' && values[name] != null,
  )
  if (!money || values.currency != null) return {}
  const row = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ currency: string | null }>(tx.trx.raw("settings ->> 'currency' as currency"))
  return { currency: row?.currency ?? 'USD' }
}
