import { ORGANIZATION_DEFAULTS } from '../access/organization.ts'
import type { Kind } from '../model/records/kind.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * Reads the organization's currency, the default of money, at most once.
 * @returns a function that adds the missing currency.
 */
export function currencyFiller(tx: Tenant, kind: Kind): (values: RecordInput) => Promise<RecordInput> {
  const money = Object.keys(kind.fields).filter((name) => kind.fields[name]!.type === 'money')
  let currency: Promise<string> | undefined
  return async (values) => {
    if (values.currency != null || money.every((name) => values[name] == null)) return values
    currency ??= organizationCurrency(tx)
    return { ...values, currency: await currency }
  }
}

/** The currency in which the organization counts. */
export async function organizationCurrency(tx: Tenant): Promise<string> {
  const row = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ currency: string | null }>(tx.trx.raw("settings ->> 'currency' as currency"))
  return row?.currency ?? ORGANIZATION_DEFAULTS.currency
}
