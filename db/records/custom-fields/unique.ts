import { type AppError, conflict } from '../../model/errors.ts'
import type { Rules } from '../../model/records/custom-fields/types.ts'
import type { Kind, KindName } from '../../model/records/kind.ts'
import type { Write } from '../../model/records/prepare.ts'
import { type UniqueValue, uniqueValues } from '../../model/records/unique.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/**
 * Unique custom fields: each value of a record that is not deleted has a row, written in the record's transaction. The
 * second of two concurrent writers of a value waits, and fails.
 */

/**
 * Claims the current unique values of the records of `writes`, and frees their former values. Throws `conflict` with
 * the field if another record has a value.
 */
export async function claimUnique(tx: Tenant, kind: Kind, rules: Rules, writes: Write[]): Promise<void> {
  const freed: HeldValue[] = []
  const taken: HeldValue[] = []
  for (const { record, action, previous } of writes) {
    if (action === 'updated' && !(previous && 'custom_fields' in previous)) continue
    const old = valuesOf(rules, record.id, previous?.custom_fields)
    const now = valuesOf(rules, record.id, record.custom_fields)
    freed.push(...without(old, now))
    taken.push(...without(now, old))
  }
  await freeValues(tx, kind.entity, freed)
  const refused = firstDuplicate(taken) ?? without(taken, await takeValues(tx, kind.entity, taken))[0]
  if (refused) throw uniqueTaken(kind, refused.name)
}

/** The values among `wanted` that any record holds. Takes no locks. */
export async function heldUnique(tx: Tenant, kind: Kind, wanted: UniqueValue[]): Promise<UniqueValue[]> {
  if (wanted.length === 0) return []
  const { rows } = await tx.trx.raw<{ rows: UniqueValue[] }>(
    `select held.name, held.value_key as key from ${GIVEN}
     join custom_field_values held on held.organization_id = ? and held.entity = ?
       and held.name = given.name and held.value_key = given.key`,
    [...columnsOf(wanted), tx.organizationId, kind.entity] as never,
  )
  return rows
}

export const uniqueTaken = (kind: Kind, name: string): AppError =>
  conflict(`another ${kind.object} has this value of ${name}`, { param: `custom_fields.${name}` })

/** Frees all values of a deleted record. */
export async function freeUnique(tx: Tenant, recordId: string): Promise<void> {
  await tx
    .trx('custom_field_values')
    .where({ organization_id: tx.organizationId, record_id: recordId })
    .delete()
}

/** Frees all values of one field. */
export async function freeField(tx: Tenant, kind: KindName, name: string): Promise<void> {
  await tx
    .trx('custom_field_values')
    .where({ organization_id: tx.organizationId, entity: kind, name })
    .delete()
}

/** A value, and the record that holds it. */
export interface HeldValue extends UniqueValue {
  record_id: string
}

const GIVEN = 'unnest(?::text[], ?::text[], ?::uuid[]) as given (name, key, record_id)'

const columnsOf = (values: (UniqueValue & { record_id?: string })[]) => [
  values.map(({ name }) => name),
  values.map(({ key }) => key),
  values.map(({ record_id = null }) => record_id),
]

/** `values`: without duplicates. @returns the claimed values; other records hold the rest. */
export async function takeValues(tx: Tenant, kind: KindName, values: HeldValue[]): Promise<UniqueValue[]> {
  if (values.length === 0) return []
  const { rows } = await tx.trx.raw<{ rows: UniqueValue[] }>(
    `insert into custom_field_values as held (organization_id, entity, name, value_key, record_id)
     select ?, ?, name, key, record_id from ${GIVEN} order by name, key
     on conflict (organization_id, entity, name, value_key)
       do update set record_id = excluded.record_id where held.record_id = excluded.record_id
     returning name, value_key as key`,
    [tx.organizationId, kind, ...columnsOf(values)] as never,
  )
  return rows
}

async function freeValues(tx: Tenant, kind: KindName, values: HeldValue[]): Promise<void> {
  if (values.length === 0) return
  await tx.trx.raw(
    `delete from custom_field_values held using ${GIVEN}
     where held.organization_id = ? and held.entity = ? and held.name = given.name
       and held.value_key = given.key and held.record_id = given.record_id`,
    [...columnsOf(values), tx.organizationId, kind] as never,
  )
}

const identity = ({ name, key }: UniqueValue) => `${name} ${key}`

function without(values: HeldValue[], others: UniqueValue[]): HeldValue[] {
  const known = new Set(others.map(identity))
  return values.filter((value) => !known.has(identity(value)))
}

function firstDuplicate(values: HeldValue[]): HeldValue | undefined {
  const seen = new Set<string>()
  return values.find((value) => seen.size === seen.add(identity(value)).size)
}

const valuesOf = (rules: Rules, record_id: string, fields: unknown): HeldValue[] =>
  uniqueValues(rules, fields).map((value) => ({ ...value, record_id }))
