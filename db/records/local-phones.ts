import type { Kind } from '../model/records/kind.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import { toE164 } from '../model/records/values.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * Phone numbers without a country code: they are of the organization's country. Reads it at most once, and only if a
 * number needs it.
 * @returns a function that completes the numbers of a record.
 */
export function localPhones(tx: Tenant, kind: Kind): (values: RecordInput) => Promise<RecordInput> {
  const names = Object.keys(kind.fields).filter((name) => kind.fields[name]!.type === 'phone')
  let country: Promise<string | undefined> | undefined
  return async (values) => {
    const local = names.filter((name) => {
      const value = values[name]
      return typeof value === 'string' && !value.startsWith('+')
    })
    if (local.length === 0) return values
    country ??= organizationCountry(tx)
    const of = await country
    if (of === undefined) return values
    return {
      ...values,
      ...Object.fromEntries(local.map((name) => [name, toE164(values[name] as string, of)])),
    }
  }
}

/** The country of the organization's phone numbers, if it has said one. */
export async function organizationCountry(tx: Tenant): Promise<string | undefined> {
  const row = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ country: string | null }>(tx.trx.raw("settings ->> 'country' as country"))
  return row?.country ?? undefined
}
