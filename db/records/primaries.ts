import { type KindName, referencesOf } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { change } from '../model/records/prepare.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type End, pairOf } from './links.ts'
import { lockRecords, referencesTo } from './lock.ts'
import { mergedInto } from './merged.ts'
import { closesCycle, reachableFrom } from './references.ts'
import { writeRecords } from './write.ts'

/** Keeps reference fields (`company_id`: the primary link) consistent with associations. */

/**
 * Linking fills a null reference field at either end. Between two records of one kind only the field of `from` is
 * filled: linking A to B makes B the parent of A.
 */
export async function fillPrimaries(tx: Tenant, from: End, to: End): Promise<void> {
  await fillReference(tx, from, to)
  if (from.entity !== to.entity) await fillReference(tx, to, from)
}

/** Fills the null references of `holder` to the kind of `other`. */
export async function fillReference(tx: Tenant, holder: End, other: End): Promise<void> {
  for (const field of primariesOf(holder, other))
    if (!(await closesCycle(tx, kinds[holder.entity], field, holder.id, other.id)))
      await replaceReference(tx, holder.entity, [holder.id], { field, from: null, to: other.id })
}

/** Unlinking clears a reference field that names the other end. */
export async function clearPrimaries(tx: Tenant, from: End, to: End): Promise<void> {
  for (const [holder, other] of [
    [from, to],
    [to, from],
  ] as const)
    for (const field of primariesOf(holder, other))
      await replaceReference(tx, holder.entity, [holder.id], { field, from: other.id, to: null })
}

/**
 * Clears the reference fields that point to a record before its delete, including those set before it was locked. Its
 * links stay for a restore, but are not visible until then.
 */
export async function clearReferencesTo(tx: Tenant, kind: KindName, id: string): Promise<void> {
  for (const { other, field } of referencesTo(kind)) {
    const holders = await holdersOf(tx, other, field, id)
    await replaceReference(tx, other, holders, { field, from: id, to: null }, [id])
  }
}

/** The records that `refillReferencesTo` would change, by kind. */
export async function holdersToRefill(
  tx: Tenant,
  kind: KindName,
  id: string,
): Promise<Map<KindName, string[]>> {
  const holders = new Map<KindName, string[]>()
  for (const { other, field } of referencesTo(kind))
    holders.set(other, [...(holders.get(other) ?? []), ...(await clearedByDelete(tx, other, field, id))])
  return holders
}

/** Fills the reference fields that the delete of a restored record has cleared, if they are still null. */
export async function refillReferencesTo(tx: Tenant, kind: KindName, id: string): Promise<void> {
  for (const { other, field } of referencesTo(kind)) {
    const cleared = await clearedByDelete(tx, other, field, id)
    const ancestors = cleared.length > 0 ? await reachableFrom(tx, kinds[other], field, id) : new Set()
    const holders = cleared.filter((holder) => !ancestors.has(holder))
    await replaceReference(tx, other, holders, { field, from: null, to: id })
  }
}

/** Moves the references to a merged record to the winner, except the winner's own. */
export async function moveReferences(
  tx: Tenant,
  kind: KindName,
  loser: string,
  winner: string,
): Promise<void> {
  for (const { other, field } of referencesTo(kind)) {
    const ancestors = await reachableFrom(tx, kinds[other], field, winner)
    const holders = (await holdersOf(tx, other, field, loser)).filter((id) => id !== winner)
    const moved = holders.filter((id) => !ancestors.has(id))
    await replaceReference(tx, other, moved, { field, from: loser, to: winner }, [loser])
    // The winner's ancestors would refer to it and close a cycle.
    const circular = holders.filter((id) => ancestors.has(id))
    await replaceReference(tx, other, circular, { field, from: loser, to: null }, [loser])
  }
}

async function holdersOf(tx: Tenant, kind: KindName, field: string, id: string): Promise<string[]> {
  const rows = await tx
    .trx(kind)
    .where({ organization_id: tx.organizationId, [field]: id })
    .whereNull('deleted_at')
    .orderBy('id')
    .select<{ id: string }[]>('id')
  return rows.map((row) => row.id)
}

/** Number of records in memory and in one statement. */
const AT_A_TIME = 1_000

/** Changes the records whose field still has the value `from`. Links stay unchanged. `except`: as of `writeRecords`. */
async function replaceReference(
  tx: Tenant,
  kind: KindName,
  ids: string[],
  { field, from, to }: { field: string; from: string | null; to: string | null },
  except?: readonly string[],
): Promise<void> {
  const definition = kinds[kind]
  const patch = { [field]: to }
  for (let start = 0; start < ids.length; start += AT_A_TIME) {
    const records = await lockRecords(tx, kind, ids.slice(start, start + AT_A_TIME))
    const writes = [...records.values()]
      .filter((record) => record[field] === from)
      .flatMap((record) => change(tx.actor, definition, record, patch, { ...record, ...patch }) ?? [])
    await writeRecords(tx, definition, writes, except)
  }
}

/**
 * SQL: the id to which a reference of the record `row`, now null, last referred. A link alone does not tell: records may
 * be linked without it.
 */
export const lastReferenceOf = (row: string, field: string): string =>
  `(select h.changes -> '${field}' ->> 'from' from record_history h
    where h.organization_id = ${row}.organization_id and h.record_id = ${row}.id
      and jsonb_exists(h.changes, '${field}') order by h.version desc limit 1)`

/** The records that are still linked with a record, and whose field, now null, last referred to it. */
async function clearedByDelete(tx: Tenant, other: KindName, field: string, id: string): Promise<string[]> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select holder.id from (
       select a_id as id from associations where organization_id = :organizationId and b_id = :id and a_entity = :other
       union
       select b_id from associations where organization_id = :organizationId and a_id = :id and b_entity = :other
     ) linked
     join ${other} holder on holder.organization_id = :organizationId and holder.id = linked.id
     where holder.${field} is null and holder.deleted_at is null
       and ${lastReferenceOf('holder', field)} = cast(:id as text)
     order by holder.id`,
    { organizationId: tx.organizationId, id, other },
  )
  return rows.map((row) => row.id)
}

/** The record that a field, now null, referred to until a delete cleared it, if the two are still linked. */
export async function clearedReference(
  tx: Tenant,
  holder: End,
  field: string,
  to: KindName,
): Promise<string | undefined> {
  const { rows } = await tx.trx.raw<{ rows: { was: string | null }[] }>(
    `select ${lastReferenceOf('r', field)} as was from (select cast(? as uuid) as organization_id, cast(? as uuid) as id) r`,
    [tx.organizationId, holder.id],
  )
  const was = rows[0]?.was
  if (!was) return undefined
  const id = (await mergedInto(tx, to, was)) ?? was
  const stillLinked = await tx
    .trx('associations')
    .where(pairOf(tx, holder, { entity: to, id }))
    .first('a_id')
  return stillLinked && id
}

const primariesOf = (holder: End, other: End): string[] =>
  referencesOf(kinds[holder.entity], other.entity).map(([name]) => name)
