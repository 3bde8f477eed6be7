import { invalid, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { type KindName, referencesOf, withArticle } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type End, exists, type LinkContent, linksTo, pairOf, upsertLink } from './links.ts'
import { type ListQuery, listRecords } from './list.ts'
import { type LockedEnds, lockEnds } from './lock.ts'
import { recordNotFound } from './merged.ts'
import { clearPrimaries, fillPrimaries } from './primaries.ts'
import { isSumOf } from './sums.ts'

/**
 * Links between records: one undirected link per pair. A reference field (`company_id`) is the primary link: setting it
 * links, clearing it unlinks; linking fills it if it is null, unlinking clears it.
 */
export interface Association extends LinkContent {
  from: { object: string; id: string }
  to: { object: string; id: string }
}

/** A record with its link to the other record. */
export type RelatedRecord = AgxRecord & { association: LinkContent }

/**
 * Links two records. Idempotent: non-empty `properties` replace those of an existing link; their member `label` becomes
 * the label. Throws `not_found` if either record does not exist, `validation_error` for a link to itself.
 */
export async function link(
  tx: Tenant,
  kind: KindName,
  id: string,
  target: KindName,
  targetId: string,
  properties: Record<string, unknown> = {},
): Promise<Association> {
  const { from, to } = endsOf(kind, id, target, targetId)
  if (from.entity === to.entity && from.id === to.id)
    throw invalid([
      { loc: ['path', 'target_id'], msg: 'a record cannot be linked to itself', type: 'self_reference' },
    ])
  await lockBoth(tx, from, to)
  const content = await upsertLink(tx, from, to, properties)
  await fillPrimaries(tx, from, to)
  return { from: shown(from), to: shown(to), ...content }
}

/**
 * Throws `not_found` if the two records are not linked, `validation_error` if one of them requires the other.
 */
export async function unlink(
  tx: Tenant,
  kind: KindName,
  id: string,
  target: KindName,
  targetId: string,
): Promise<{ from: Association['from']; to: Association['to']; deleted: true }> {
  const { from, to } = endsOf(kind, id, target, targetId)
  const locked = await lockBoth(tx, from, to)
  for (const [holder, other] of [
    [from, to],
    [to, from],
  ] as const)
    refuseIfRequired(locked, holder, other)
  const removed = await tx
    .trx('associations')
    .where(pairOf(tx, from, to))
    .delete()
  if (removed === 0) throw notFound('association')
  await clearPrimaries(tx, from, to)
  return { from: shown(from), to: shown(to), deleted: true }
}

/** The records of the kind `target` that are linked with a record, each with its link. Throws `not_found`. */
export async function listRelated(
  tx: Tenant,
  kind: KindName,
  id: string,
  target: KindName,
  query: ListQuery,
): Promise<Page<RelatedRecord>> {
  if (!(await exists(tx, { entity: kind, id }))) throw await recordNotFound(tx, kinds[kind], id)
  const end = { entity: kind, id: id.toLowerCase() }
  const page = await listRecords(tx, target, query, end)
  const ids = page.data.map((record) => record.id)
  const links = ids.length > 0 ? await linksTo(tx, end, target, ids) : new Map<string, LinkContent>()
  const data = page.data.flatMap((record) => {
    const association = links.get(record.id)
    // Omits a record that was unlinked between the two statements.
    return association ? { ...record, association } : []
  })
  return { ...page, data }
}

const endsOf = (kind: KindName, id: string, target: KindName, targetId: string) => ({
  from: { entity: kind, id: id.toLowerCase() },
  to: { entity: target, id: targetId.toLowerCase() },
})

const shown = ({ entity, id }: End) => ({ object: kinds[entity].object, id })

/** Locks both ends; an end whose reference field or sum may change with the link as for an update. Throws `not_found`. */
async function lockBoth(tx: Tenant, from: End, to: End): Promise<LockedEnds> {
  const refers = ({ entity }: End, other: End) =>
    referencesOf(kinds[entity], other.entity).length > 0 || isSumOf(kinds[entity], other.entity)
  const changing = [...(refers(from, to) ? [from] : []), ...(refers(to, from) ? [to] : [])]
  const locked = await lockEnds(
    tx,
    changing,
    [from, to].filter((end) => !changing.includes(end)),
  )
  for (const end of [from, to])
    if (!locked.has(end)) throw await recordNotFound(tx, kinds[end.entity], end.id)
  return locked
}

/** Throws `validation_error` if a required reference of a record names the other. */
function refuseIfRequired(locked: LockedEnds, holder: End, other: End): void {
  const { object } = kinds[holder.entity]
  for (const [name, { required, to }] of referencesOf(kinds[holder.entity], other.entity)) {
    if (!required || locked.record(holder)?.[name] !== other.id) continue
    const msg = `${withArticle(object)} cannot be without its ${kinds[to].object}`
    const hint = `delete the ${object}, or change its ${name}`
    throw invalid([{ loc: ['path', 'target_id'], msg, type: 'invalid_value', hint }])
  }
}
