import type { Tenant } from '../postgres/tenancy.ts'
import type { Kind } from './model/kind.ts'
import type { RecordInput } from './model/schemas.ts'

/**
 * Money without a currency is in the organization's. Reads that at most once for `all` the values.
 * @returns a function that fills it in.
 */
export async function currencyFor(
  tx: Tenant,
  kind: Kind,
  all: RecordInput[],
): Promise<(values: RecordInput) => RecordInput> {
  const money = Object.keys(kind.fields).filter((name) => kind.fields[name]!.type === 'money')
  const lacks = (values: RecordInput) => values.currency == null && money.some((name) => values[name] != null)
  if (!all.some(lacks)) return (values) => values
  const row = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ currency: string | null }>(tx.trx.raw("settings ->> 'currency' as currency"))
  const currency = row?.currency ?? 'USD'
  return (values) => (lacks(values) ? { ...values, currency } : values)
}
