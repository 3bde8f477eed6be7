import { type Kind, type KindName, referencesOf } from '../model/records/kind.ts'
import type { Write } from '../model/records/prepare.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The rows of associations: one for each pair of records, indexed for both ends. */

/** An end of a link. */
export interface End {
  entity: KindName
  id: string
}

/** A link in the input of a create or an upsert. */
export interface GivenLink extends End {
  label?: string | null
}

/** A record with its write and the links of its input. */
export interface Linked {
  record: { id: string }
  write: Pick<Write, 'record' | 'previous'> | undefined
  links: GivenLink[]
}

export interface LinkChanges {
  gone: (Pair & { cleared: boolean })[]
  made: (Pair & { label: string | null })[]
}

/**
 * The link changes of a set of records: the links of their inputs, and those of changed reference fields. A cleared
 * field removes its link. A field that is set to another record removes the link to the former record, unless that
 * link has a label or properties.
 */
export function linkChanges(tx: Tenant, kind: Kind, all: Linked[]): LinkChanges {
  const gone: LinkChanges['gone'] = []
  const made = new Map<string, LinkChanges['made'][number]>()
  for (const { record, write, links } of all) {
    const pairWith = (to: End) => pairOf(tx, { entity: kind.entity, id: record.id }, to)
    const make = (to: End, label: string | null) => {
      const pair = pairWith(to)
      const key = `${pair.a_id} ${pair.b_id}`
      made.set(key, { ...pair, label: label ?? made.get(key)?.label ?? null })
    }
    for (const [name, { to }] of write ? referencesOf(kind) : []) {
      const { record, previous } = write!
      if (previous && !(name in previous)) continue
      const [old, next] = [previous?.[name], record[name]]
      if (typeof old === 'string') gone.push({ ...pairWith({ entity: to, id: old }), cleared: next === null })
      if (typeof next === 'string') make({ entity: to, id: next }, null)
    }
    for (const { label = null, ...to } of links) make(to, label)
  }
  return { gone, made: [...made.values()] }
}

/** Deletes and creates links. An existing link stays unchanged, except that a given label replaces its own. */
export async function changeLinks(tx: Tenant, { gone, made }: LinkChanges): Promise<void> {
  if (gone.length > 0) await deleteLinks(tx, gone)
  if (made.length > 0) await insertLinks(tx, made)
}

const PAIRS =
  'jsonb_to_recordset(?) as p (a_entity text, a_id uuid, b_entity text, b_id uuid, cleared boolean, label text)'

/** A link that is not `cleared` is deleted only if it has no label and no properties. */
async function deleteLinks(tx: Tenant, pairs: (Pair & { cleared: boolean })[]): Promise<void> {
  await tx.trx.raw(
    `delete from associations a using ${PAIRS}
     where a.organization_id = ? and (a.a_entity, a.a_id, a.b_entity, a.b_id) = (p.a_entity, p.a_id, p.b_entity, p.b_id)
       and (p.cleared or (a.label is null and a.properties = '{}'))`,
    [JSON.stringify(pairs), tx.organizationId],
  )
}

async function insertLinks(tx: Tenant, pairs: LinkChanges['made']): Promise<void> {
  await tx.trx.raw(
    `insert into associations (organization_id, a_entity, a_id, b_entity, b_id, label)
     select ?, a_entity, a_id, b_entity, b_id, label from ${PAIRS} order by a_id, b_entity, b_id
     on conflict (organization_id, a_id, b_entity, b_id)
       do update set label = excluded.label where excluded.label is not null`,
    [tx.organizationId, JSON.stringify(pairs)],
  )
}

/**
 * Moves all links of `from` to `to`. If both are linked with the same record, the two links become one, in which the
 * label and properties of `to` win. A link between the two is removed.
 */
export async function moveLinks(tx: Tenant, from: End, to: End): Promise<void> {
  await tx.trx.raw(
    `with gone as (
       delete from associations
       where organization_id = :organizationId
         and ((a_id = :fromId and a_entity = :fromEntity) or (b_id = :fromId and b_entity = :fromEntity))
       returning *
     ), moved as (
       select case when a_id = :fromId then b_entity else a_entity end as entity,
              case when a_id = :fromId then b_id else a_id end as id, label, properties, created_at
       from gone
     )
     insert into associations (organization_id, a_entity, a_id, b_entity, b_id, label, properties, created_at)
     select :organizationId, a[1], a[2]::uuid, b[1], b[2]::uuid, label, properties, created_at
     from moved
     cross join lateral (select array[entity, id::text] collate "C", array[:toEntity, :toId] collate "C") ends (one, two)
     cross join lateral (select least(one, two), greatest(one, two)) pair (a, b)
     where id <> :toId
     on conflict (organization_id, a_id, b_entity, b_id) do update
       set label = coalesce(associations.label, excluded.label),
           properties = excluded.properties || associations.properties`,
    {
      organizationId: tx.organizationId,
      fromId: from.id,
      fromEntity: from.entity,
      toId: to.id,
      toEntity: to.entity,
    },
  )
}

/** The content of a link, without its two records. */
export interface LinkContent {
  label: string | null
  properties: Record<string, unknown>
  created_at: string
}

/** Creates or updates a link. `given` replaces the label and properties of an existing link, unless it is empty. */
export async function upsertLink(
  tx: Tenant,
  from: End,
  to: End,
  given: Record<string, unknown>,
): Promise<LinkContent> {
  const { label, ...properties } = given
  const [row] = await tx
    .trx('associations')
    .insert({
      ...pairOf(tx, from, to),
      label: typeof label === 'string' ? label : null,
      properties: JSON.stringify(properties),
    })
    .onConflict(['organization_id', 'a_id', 'b_entity', 'b_id'])
    // RETURNING includes an existing row only if the update sets a column.
    .merge(Object.keys(given).length > 0 ? ['label', 'properties'] : ['a_id'])
    .returning<LinkRow[]>(['label', 'properties', 'created_at'])
  return present(row!)
}

/** The links of a record with the records `ids` of `target`, in either direction, by these ids. */
export async function linksTo(
  tx: Tenant,
  { entity, id }: End,
  target: KindName,
  ids: string[],
): Promise<Map<string, LinkContent>> {
  const { rows } = await tx.trx.raw<{ rows: (LinkRow & { other: string })[] }>(
    `select b_id as other, label, properties, created_at from associations
     where organization_id = ? and a_id = ? and a_entity = ? and b_entity = ? and b_id = any(?)
     union all
     select a_id, label, properties, created_at from associations
     where organization_id = ? and b_id = ? and b_entity = ? and a_entity = ? and a_id = any(?)`,
    [1, 2].flatMap(() => [tx.organizationId, id, entity, target, ids]) as never,
  )
  return new Map(rows.map((row) => [row.other, present(row)]))
}

interface LinkRow extends Omit<LinkContent, 'created_at'> {
  created_at: Date
}

const present = ({ label, properties, created_at }: LinkRow): LinkContent => ({
  label,
  properties,
  created_at: created_at.toISOString(),
})

type Pair = ReturnType<typeof pairOf>

/** The key of a pair's row, independent of the order of the ends. Ids must be in lower case. */
export function pairOf(tx: Tenant, one: End, two: End) {
  const [a, b] = `${one.entity} ${one.id}` < `${two.entity} ${two.id}` ? [one, two] : [two, one]
  return {
    organization_id: tx.organizationId,
    a_entity: a.entity,
    a_id: a.id,
    b_entity: b.entity,
    b_id: b.id,
  }
}

/** Whether the record exists and is not deleted. */
export async function exists(tx: Tenant, end: End): Promise<boolean> {
  const row = await tx
    .trx(end.entity)
    .where({ organization_id: tx.organizationId, id: end.id })
    .whereNull('deleted_at')
    .first('id')
  return row !== undefined
}
