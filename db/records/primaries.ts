import type { Tenant } from '../tenancy.ts'
import type { EntityName } from './kind.ts'
import { entities, entityNames } from './kinds/index.ts'
import type { End } from './links.ts'
import { closesCircle, referencesOf } from './references.ts'
import { lockRecord, updateRecord } from './update.ts'

/** Keeps reference fields (`company_id`: the primary link) in agreement with associations. */

/**
 * Linking fills a reference field that is null, at either end. Between two of one kind it is the first's: what links
 * A to B makes B the parent of A.
 */
export async function fillPrimaries(tx: Tenant, from: End, to: End): Promise<void> {
  await fillReference(tx, from, to)
  if (from.entity !== to.entity) await fillReference(tx, to, from)
}

/** Fills the reference of `holder` to `other`, if it has one, where that is null. */
export async function fillReference(tx: Tenant, holder: End, other: End): Promise<void> {
  for (const field of primariesOf(holder, other)) {
    const free = (await currentValue(tx, holder, field)) === null
    if (free && !(await closesCircle(tx, entities[holder.entity], field, holder.id, other.id)))
      await updateRecord(tx, holder.entity, holder.id, { [field]: other.id })
  }
}

/** Unlinking clears a reference field that names the other end. */
export async function clearPrimaries(tx: Tenant, from: End, to: End): Promise<void> {
  for (const [holder, other] of [
    [from, to],
    [to, from],
  ] as const)
    for (const field of primariesOf(holder, other))
      if ((await currentValue(tx, holder, field)) === other.id)
        await updateRecord(tx, holder.entity, holder.id, { [field]: null })
}

/**
 * Clears the reference fields that point to a record that is about to be deleted. Its links stay, for it may be
 * restored; until then they are not seen.
 */
export async function clearReferencesTo(tx: Tenant, entity: EntityName, id: string): Promise<void> {
  for (const other of entityNames)
    for (const [field] of referencesOf(entities[other], entity)) {
      const rows = await tx
        .trx(other)
        .where({ organization_id: tx.organizationId, [field]: id })
        .whereNull('deleted_at')
        .orderBy('id')
        .select<{ id: string }[]>('id')
      for (const row of rows) await updateRecord(tx, other, row.id, { [field]: null }, { keepLinks: true })
    }
}

/** Fills the reference fields that are null at the other end of a link with a record that was just restored. */
export async function refillReferencesTo(tx: Tenant, entity: EntityName, id: string): Promise<void> {
  for (const other of entityNames)
    for (const [field] of referencesOf(entities[other], entity)) {
      const lost = await clearedByDelete(tx, other, field, id)
      for (const holder of lost)
        if (!(await closesCircle(tx, entities[other], field, holder, id)))
          await updateRecord(tx, other, holder, { [field]: id })
    }
}

/**
 * Those still linked with the record, whose reference to it was the last that the field held. The history tells them
 * from those that were only linked with it.
 */
async function clearedByDelete(tx: Tenant, other: EntityName, field: string, id: string): Promise<string[]> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select holder.id from (
       select a_id as id from associations where organization_id = ? and b_id = ? and a_entity = ?
       union
       select b_id from associations where organization_id = ? and a_id = ? and b_entity = ?
     ) linked
     join ${other} holder on holder.organization_id = ? and holder.id = linked.id
     cross join lateral (
       select changes -> ? ->> 'from' as was from record_history
       where organization_id = ? and record_id = holder.id and jsonb_exists(changes, ?)
       order by version desc limit 1
     ) last_change
     where holder.${field} is null and holder.deleted_at is null and was = ?
     order by holder.id`,
    [
      ...[tx.organizationId, id, other],
      ...[tx.organizationId, id, other],
      ...[tx.organizationId, field, tx.organizationId, field, id],
    ],
  )
  return rows.map((row) => row.id)
}

const primariesOf = (holder: End, other: End): string[] =>
  referencesOf(entities[holder.entity], other.entity).map(([name]) => name)

async function currentValue(tx: Tenant, { entity, id }: End, field: string): Promise<unknown> {
  return (await lockRecord(tx, entity, id))[field]
}
