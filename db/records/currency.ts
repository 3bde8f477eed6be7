import { ORGANIZATION_DEFAULTS } from '../access/organization.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { Kind } from './model/kind.ts'

/** Money without a currency is in the organization's: fills it in, in `values`, where one is missing. */
export async function fillCurrency(tx: Tenant, kind: Kind, values: Record<string, unknown>): Promise<void> {
  if (lacksCurrency(kind, values)) values.currency = await organizationCurrency(tx)
}

export const lacksCurrency = (kind: Kind, values: Record<string, unknown>): boolean =>
  values.currency == null &&
  Object.entries(kind.fields).some(([name, { type }]) => type === 'money' && values[name] != null)

export async function organizationCurrency(tx: Tenant): Promise<string> {
  const row = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ currency: string | null }>(tx.trx.raw("settings ->> 'currency' as currency"))
  return row?.currency ?? ORGANIZATION_DEFAULTS.currency
}
