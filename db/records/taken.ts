import type { AppError } from '../model/errors.ts'
import type { Rules } from '../model/records/custom-fields/types.ts'
import { externalIdTaken } from '../model/records/key-taken.ts'
import type { Kind } from '../model/records/kind.ts'
import type { Write } from '../model/records/prepare.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { uniqueKeys, uniqueValues } from '../model/records/unique.ts'
import { customKey } from '../model/records/upsert-keys.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { heldUnique, uniqueTaken } from './custom-fields/unique.ts'
import { finderBy } from './find-by-key.ts'

/**
 * Finds new records whose external_id or unique value is taken by an existing record or an earlier one of the set: they
 * would fail the statement that writes all of them. Takes no locks, so the statement may still fail. A single record
 * needs no check: its write fails. @returns the `conflict` of each by id.
 */
export async function takenAmong(
  tx: Tenant,
  kind: Kind,
  rules: Rules | undefined,
  creations: Write[],
): Promise<Map<string, AppError>> {
  const refused = new Map<string, AppError>()
  if (creations.length < 2 || !rules) return refused
  const records = creations.map(({ record }) => record)
  const values = records.flatMap(({ custom_fields }) => uniqueValues(rules, custom_fields))
  const [externalIds, unique] = await Promise.all([
    heldExternalIds(tx, kind, records),
    heldUnique(tx, kind, values),
  ])
  const taken = new Set([
    ...externalIds.map((id) => `external_id ${id}`),
    ...unique.map(({ name, key }) => `custom_fields.${name} ${key}`),
  ])
  for (const record of records) {
    const keys = uniqueKeys(rules, record)
    const [field] = keys.find((key) => taken.has(key.join(' '))) ?? []
    if (field === undefined) for (const key of keys) taken.add(key.join(' '))
    else if (field === 'external_id') refused.set(record.id, externalIdTaken(kind, record))
    else refused.set(record.id, uniqueTaken(kind, customKey(field)!))
  }
  return refused
}

/** The external_ids of `records` that stored records have. */
async function heldExternalIds(tx: Tenant, kind: Kind, records: AgxRecord[]): Promise<string[]> {
  const finder = await finderBy(tx, kind.entity, 'external_id')
  const held = await finder.peek(records.flatMap((record) => finder.keyOf(record) ?? []))
  return [...held.keys()]
}
