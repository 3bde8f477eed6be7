import { eventRows, insertEventRows } from '../../events/outbox.ts'
import type { Actor } from '../../model/actor.ts'
import { present, shownColumns } from '../../model/records/columns.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kinds } from '../../model/records/kinds/index.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { selectionConditions } from '../list.ts'
import { allOf, queryRows, searchView } from '../pages.ts'
import type { Selection } from '../selection.ts'

/**
 * Settles who is a member of a list: rows of `list_members` change together with `member_count`, and with the events
 * `list.entered` and `list.left`, in the transaction of the caller, who has locked the list. So members change in an
 * order, and each change raises one event.
 */

/** Why members change: somebody added or removed them, their record changed, or all records were compared. */
export const LIST_CAUSES = ['members', 'record', 'comparison'] as const
export type ListCause = (typeof LIST_CAUSES)[number]

/** A list as the events name it. */
export interface NamedList {
  id: string
  name: string
  entity: KindName
}

export interface MemberChange {
  list: NamedList
  record_id: string
  /** Whether it entered; otherwise it left. */
  entered: boolean
}

/** Who changed the record: the actor, and the run that did. */
export interface ChangedBy {
  actor: Actor
  run: string | null
}

/** SQL: the live records of a kind among the ids. */
const LIVE = 'organization_id = ? and deleted_at is null and id = any(array(select unnest(?::uuid[])))'

/**
 * Compares records with the filter of a list by the conditions of the list of records, so that both find the same ones.
 * Throws `validation_error` for a filter that no longer fits what the organization defines.
 */
export async function settleFilterList(
  tx: Tenant,
  list: NamedList & { selection: Selection },
  ids: string[],
): Promise<MemberChange[]> {
  if (ids.length === 0) return []
  const conditions = await selectionConditions(tx, list.entity, list.selection)
  const where = allOf([{ sql: LIVE, bindings: [tx.organizationId, ids] }, ...conditions])
  const of = [tx.organizationId, list.id]
  const rows = await queryRows<{ record_id: string; entered: boolean }>(
    tx,
    `with wanted as materialized (select id from ${searchView(kinds[list.entity])} where ${where.sql}),
     added as (
       insert into list_members (organization_id, list_id, record_id, entered)
       select ?::uuid, ?::uuid, id, true from wanted on conflict do nothing returning record_id),
     removed as (
       delete from list_members where organization_id = ? and list_id = ?
         and record_id = any(array(select unnest(?::uuid[]))) and record_id not in (select id from wanted)
       returning record_id)
     select record_id, true as entered from added union all select record_id, false from removed`,
    [...where.bindings, ...of, ...of, ids],
  )
  return rows.map((row) => ({ list, ...row }))
}

/** The members of static lists among the records: they leave with the deletion of their record, and enter with its restore. */
export async function settleStaticLists(
  tx: Tenant,
  lists: readonly NamedList[],
  entity: KindName,
  ids: string[],
): Promise<MemberChange[]> {
  if (lists.length === 0 || ids.length === 0) return []
  const rows = await queryRows<{ list_id: string; record_id: string; entered: boolean }>(
    tx,
    `with live as (select id from ${entity} where ${LIVE})
     update list_members m set entered = not entered
     where organization_id = ? and list_id = any(?) and record_id = any(array(select unnest(?::uuid[])))
       and entered <> (record_id in (select id from live))
     returning list_id, record_id, entered`,
    [tx.organizationId, ids, tx.organizationId, lists.map(({ id }) => id), ids],
  )
  const byId = new Map(lists.map((list) => [list.id, list]))
  return rows.map(({ list_id, ...row }) => ({ list: byId.get(list_id)!, ...row }))
}

/** What `completeChanges` needs to know of changes. */
export interface Completion {
  cause: ListCause
  /** Who changed which record, if it is not the actor of the transaction. */
  by?: ReadonlyMap<string, ChangedBy>
  /** The lists that raise no events. */
  silent?: ReadonlySet<string>
}

/** Counts the members of the changed lists, and raises the events. */
export async function completeChanges(
  tx: Tenant,
  changes: readonly MemberChange[],
  { cause, by = new Map(), silent = new Set() }: Completion,
): Promise<void> {
  if (changes.length === 0) return
  const records = await lockStored(tx, changes)
  const erased = changes.filter(({ record_id, entered }) => entered && !records.has(record_id))
  for (const { list, record_id } of erased)
    await tx
      .trx('list_members')
      .where({ organization_id: tx.organizationId, list_id: list.id, record_id })
      .delete()
  await countMembers(
    tx,
    changes.filter((change) => !erased.includes(change)),
  )
  const raised = changes.filter(({ list, record_id }) => records.has(record_id) && !silent.has(list.id))
  const events = raised.map(({ list, record_id, entered }) => {
    const run = by.get(record_id)?.run
    return {
      name: entered ? 'list.entered' : 'list.left',
      data: {
        object: 'list_membership',
        id: record_id,
        list: { id: list.id, name: list.name },
        entity: list.entity,
        cause,
        record: records.get(record_id),
      },
      ...(run && { cause: run }),
    }
  })
  if (events.length === 0) return
  const rows = eventRows(tx, events)
  await insertEventRows(
    tx,
    rows.map((row, place) => ({ ...row, actor: by.get(raised[place]!.record_id)?.actor ?? row.actor })),
  )
}

async function countMembers(tx: Tenant, changes: readonly MemberChange[]): Promise<void> {
  const counts = new Map<string, number>()
  for (const { list, entered } of changes)
    counts.set(list.id, (counts.get(list.id) ?? 0) + (entered ? 1 : -1))
  if (counts.size === 0) return
  await tx.trx.raw(
    `update lists l set member_count = member_count + c.n
     from jsonb_to_recordset(?) as c (id uuid, n integer) where l.organization_id = ? and l.id = c.id`,
    [JSON.stringify([...counts].map(([id, n]) => ({ id, n }))), tx.organizationId],
  )
}

/**
 * The records as the API shows them, also deleted ones. Locks them against an erasure, which would miss members and
 * events that are not committed: of a record that was erased meanwhile nothing stays.
 */
async function lockStored(tx: Tenant, changes: readonly MemberChange[]): Promise<Map<string, object>> {
  const found = new Map<string, object>()
  for (const entity of new Set(changes.map(({ list }) => list.entity))) {
    const ids = changes.flatMap(({ list, record_id }) => (list.entity === entity ? record_id : []))
    const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(
      `select ${shownColumns(kinds[entity]).join(', ')} from ${entity}
       where organization_id = ? and id = any(array(select unnest(?::uuid[]))) order by id for key share`,
      [tx.organizationId, ids] as never,
    )
    for (const row of rows) found.set(row.id as string, present(kinds[entity], row))
  }
  return found
}
