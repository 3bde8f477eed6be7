import type { AppError } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { heldUnique, uniqueTaken } from './custom-fields/unique.ts'
import type { Rules } from './model/custom-fields/types.ts'
import { uniqueValues } from './model/custom-fields/unique.ts'
import type { Kind } from './model/kind.ts'
import type { AgxRecord } from './model/schemas.ts'
import { externalIdTaken } from './write-set.ts'

/**
 * Finds those of several new records whose external_id or unique custom field another record has, or one before them,
 * by id with the `conflict`: they would fail the statement that writes them all. It locks nothing, so the statement may
 * still fail. A single record needs no such check: its write finds out.
 */
export async function takenAmong(
  tx: Tenant,
  kind: Kind,
  rules: Rules,
  records: AgxRecord[],
): Promise<Map<string, AppError>> {
  const refused = new Map<string, AppError>()
  if (records.length < 2) return refused
  const valuesOf = (record: AgxRecord) => uniqueValues(rules, record.custom_fields)
  const [externalIds, unique] = await Promise.all([
    heldExternalIds(tx, kind, records),
    heldUnique(tx, kind, records.flatMap(valuesOf)),
  ])
  const ofField = ({ name, key }: { name: string; key: string }) => `custom_fields.${name} ${key}`
  const taken = new Set([...externalIds.map((id) => `external_id ${id}`), ...unique.map(ofField)])
  for (const record of records) {
    const values = valuesOf(record)
    const lost = values.find((value) => taken.has(ofField(value)))
    const externalId = record.external_id === null ? [] : [`external_id ${record.external_id}`]
    if (externalId.some((one) => taken.has(one))) refused.set(record.id, externalIdTaken(kind, record))
    else if (lost) refused.set(record.id, uniqueTaken(kind, lost))
    else for (const one of [...externalId, ...values.map(ofField)]) taken.add(one)
  }
  return refused
}

/** The external_ids of `records` that records in the database have. */
async function heldExternalIds(tx: Tenant, kind: Kind, records: AgxRecord[]): Promise<string[]> {
  const wanted = records.flatMap(({ external_id }) => (external_id as string | null) ?? [])
  if (wanted.length === 0) return []
  const rows = await tx
    .trx(kind.entity)
    .where({ organization_id: tx.organizationId })
    .whereNull('deleted_at')
    .where('external_id', tx.trx.raw('any(?)', [wanted]))
    .select<{ external_id: string }[]>('external_id')
  return rows.map((row) => row.external_id)
}
