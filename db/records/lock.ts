import { present, shownColumns } from '../model/records/columns.ts'
import { type KindName, referencesOf } from '../model/records/kind.ts'
import { kindNames, kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { OF_ORGANIZATION, type Tenant } from '../postgres/tenancy.ts'
import type { End } from './links.ts'
import { recordNotFound } from './merged.ts'

/**
 * Row locks of records. Every write takes its locks in this order, to avoid deadlocks:
 *
 * 0. The lives of records (`lockLives`): deletes and merges share this lock; a restore takes it alone. They change the
 *    records that refer to theirs. That set can change while they wait, so no order of row locks would prevent a
 *    deadlock.
 * 1. The lookup keys of upserts (`Finder.find`), all keys of one field at once.
 * 2. The rules of custom fields (`lockFieldRules`), if the write has custom fields. An upsert by a unique custom field
 *    takes them before 1.
 * 3. The changing records: referring kinds before the kinds that they refer to (`referringFirst`), the records of one
 *    kind by id. A delete, restore or merge also changes the records that refer to its record.
 *    The records with a sum of others change with these, and come after them: by id (`lockSums`).
 * 4. The targets of references and links, against deletion: by id.
 * 5. For a new reference within a kind, the lock of that field (`reachableFrom`).
 * 6. The locks of the writes themselves: external_ids, then unique values by field and value, then links by id.
 *
 * A transaction with several steps may use another order and deadlock: `Database.tenant` retries it.
 */
type Lock = 'for no key update' | 'for update'

/**
 * Locks records against changes and deletion until the transaction ends. New references to them remain possible, except
 * with `for update`, the lock of a delete. @returns the existing records, by id.
 */
export async function lockRecords(
  tx: Tenant,
  kind: KindName,
  ids: string[],
  lock: Lock = 'for no key update',
): Promise<Map<string, AgxRecord>> {
  if (ids.length === 0) return new Map()
  const definition = kinds[kind]
  const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(
    `select ${shownColumns(definition).join(', ')} from ${kind}
     where ${OF_ORGANIZATION} and id ${AMONG} and deleted_at is null order by id ${lock}`,
    [tx.organizationId, ids],
  )
  return new Map(rows.map((row) => [row.id as string, present(definition, row)]))
}

/**
 * Replaces `= any(?)`, which PostgreSQL plans again in each execution, because its generic plan assumes ten ids. For
 * one contact: 0.11 ms instead of 0.32 ms.
 */
const AMONG = '= any(array(select unnest(?::uuid[])))'

/** Throws `not_found`. */
export async function lockRecord(tx: Tenant, kind: KindName, id: string, lock?: Lock): Promise<AgxRecord> {
  const record = (await lockRecords(tx, kind, [id], lock)).get(id)
  if (!record) throw await recordNotFound(tx, kinds[kind], id)
  return record
}

/** Locks records against deletion until the transaction ends. @returns the ids of the existing records. */
export async function lockExisting(tx: Tenant, kind: KindName, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select id from ${kind} where ${OF_ORGANIZATION} and id ${AMONG} and deleted_at is null
     order by id for key share`,
    [tx.organizationId, ids],
  )
  return new Set(rows.map((row) => row.id))
}

/** The records that `lockEnds` has locked. */
export interface LockedEnds {
  has(end: End): boolean
  /** One of the records locked as `changing`. */
  record(end: End): AgxRecord | undefined
}

/** Locks `changing` as `lockRecords` does, and `kept` as `lockExisting` does, in the order of this file's header. */
export async function lockEnds(tx: Tenant, changing: End[], kept: End[]): Promise<LockedEnds> {
  const records = new Map<string, AgxRecord>()
  const others = new Set<string>()
  const nameOf = ({ entity, id }: End) => `${entity} ${id}`
  for (const [kind, ids] of byKind(changing))
    for (const [id, record] of await lockRecords(tx, kind, ids))
      records.set(nameOf({ entity: kind, id }), record)
  for (const [kind, ids] of byKind(kept))
    for (const id of await lockExisting(tx, kind, ids)) others.add(nameOf({ entity: kind, id }))
  return {
    has: (end) => records.has(nameOf(end)) || others.has(nameOf(end)),
    record: (end) => records.get(nameOf(end)),
  }
}

const byKind = (ends: End[]): [KindName, string[]][] =>
  referringFirst.flatMap((kind) => {
    const ids = ends.filter((end) => end.entity === kind).map(({ id }) => id)
    return ids.length > 0 ? [[kind, ids]] : []
  })

/** Waits until no restore of the organization is in progress; for a restore, until no delete or merge is either. */
export async function lockLives(tx: Tenant, forRestore = false): Promise<void> {
  await tx.trx.raw(
    `select pg_advisory_xact_lock${forRestore ? '' : '_shared'}(hashtextextended('record lives ' || ?::text, 0))`,
    [tx.organizationId],
  )
}

/**
 * Locks the records that refer to records before their deletes lock the records themselves: the lock order of updates.
 * Referring records of the same kind are locked by id together with `own`, the records of the deletes or the merge,
 * also deleted ones: a restore may end before the delete reads them.
 */
export async function lockReferencesTo(
  tx: Tenant,
  kind: KindName,
  ids: string[],
  own: string[] = ids,
): Promise<void> {
  for (const other of referringFirst) {
    const fields = referencesOf(kinds[other], kind).map(([field]) => field)
    const isOwn = other === kind && (fields.length > 0 || own.length > 1)
    if (fields.length === 0 && !isOwn) continue
    await tx
      .trx(other)
      .where({ organization_id: tx.organizationId })
      .where((any) => {
        for (const field of fields) any.orWhere((one) => one.whereIn(field, ids).whereNull('deleted_at'))
        if (isOwn) any.orWhereIn('id', own)
      })
      .orderBy('id')
      .forNoKeyUpdate()
      .select('id')
  }
}

/**
 * Locks the records that a restore changes, before it locks the record itself: `holders` by kind, and those of the same
 * kind by id together with `own`, the record and the records of its kind that it refers to.
 */
export async function lockForRestore(
  tx: Tenant,
  kind: KindName,
  holders: ReadonlyMap<KindName, string[]>,
  own: string[],
): Promise<void> {
  for (const other of referringFirst) {
    const ids = [...(holders.get(other) ?? []), ...(other === kind ? own : [])]
    if (ids.length === 0) continue
    await tx
      .trx(other)
      .where({ organization_id: tx.organizationId })
      .whereIn('id', ids)
      .orderBy('id')
      .forNoKeyUpdate()
      .select('id')
  }
}

/** The length of the longest chain of references from a kind to others. */
const height = (kind: KindName): number =>
  Math.max(
    0,
    ...referencesOf(kinds[kind])
      .filter(([, { to }]) => to !== kind)
      .map(([, { to }]) => 1 + height(to)),
  )

/** All kinds; each comes before the kinds that it refers to. */
export const referringFirst = kindNames.toSorted((a, b) => height(b) - height(a))

/** The reference fields of all kinds that point to `kind`, in the order of `referringFirst`. */
export const referencesTo = (kind: KindName): { other: KindName; field: string }[] =>
  referringFirst.flatMap((other) => referencesOf(kinds[other], kind).map(([field]) => ({ other, field })))
