import type { Knex } from 'knex'
import { keysOf } from '../../events/by-key.ts'
import type { Actor } from '../../model/actor.ts'
import { AppError, fullMessage } from '../../model/errors.ts'
import type { EventKey } from '../../model/events/event.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kindNamed, kindNames, kinds } from '../../model/records/kinds/index.ts'
import { isRefusal, isStatementTimeout } from '../../postgres/sql-state.ts'
import { type System, savepoint, type Tenant } from '../../postgres/tenancy.ts'
import { listDueRows } from '../../queue/due-rows.ts'
import type { Selection } from '../selection.ts'
import {
  type ChangedBy,
  completeChanges,
  type MemberChange,
  settleFilterList,
  settleStaticLists,
} from './settle.ts'

/**
 * Records that changed, compared with the lists of their kind. The transaction that matches an event of a record queues
 * it if there is any such list; a worker compares the records as they are then, in the transaction that takes their events
 * from the queue and raises those of the lists. So neither a kill nor a flood of events loses or doubles one, and
 * matching costs other organizations nothing.
 */

const ENTITY = kindNames.map((kind) => `when '${kinds[kind].object}' then '${kind}'`).join(' ')

/** SQL: whether there are lists of the kind of the event `e`. */
export const isListed = (e: string): string => `exists (
  select from lists l where l.organization_id = ${e}.organization_id and l.deleted_at is null
    and l.entity = case split_part(${e}.name, '.', 1) ${ENTITY} end)`

/** Queues the records of these events. @returns their number. */
export async function queueListChanges(trx: Knex, events: EventKey[]): Promise<number> {
  if (events.length === 0) return 0
  await trx.raw(
    `insert into list_changes (organization_id, id)
     select * from unnest(cast(:organizationIds as uuid[]), cast(:eventIds as uuid[])) on conflict do nothing`,
    { ...keysOf(events) },
  )
  return events.length
}

/** Up to `limit` queued events, by organization; organizations take turns, each with its oldest first. */
export const listQueuedChanges = (system: System, limit: number) =>
  listDueRows(system, { table: 'list_changes', at: 'id', waits: 'true', due: 'true' }, limit)

/** A list as workers compare records with it. */
export interface ComparedList {
  id: string
  name: string
  entity: KindName
  /** Null: a static list. */
  selection: Selection | null
  filled_at: Date | null
}

export const COMPARED = ['id', 'name', 'entity', 'selection', 'filled_at'] as const

/**
 * Compares the records of these queued events with the lists of their kinds. What another worker compares is skipped.
 * @returns the number of events.
 */
export async function compareChanges(tx: Tenant, eventIds: string[]): Promise<number> {
  const { taken, records } = await takeChanges(tx, eventIds)
  const lists = await lockLists(tx, [...records.keys()])
  const silent = new Set(lists.flatMap(({ id, filled_at }) => (filled_at ? [] : id)))
  for (const [entity, by] of records) {
    const ids = [...by.keys()]
    const own = lists.filter((list) => list.entity === entity)
    const filtered = own.filter(({ selection }) => selection)
    const fixed = own.filter(({ selection }) => !selection)
    const changes = await settleStaticLists(tx, fixed, entity, ids)
    for (const list of filtered) changes.push(...(await settleOrNote(tx, list, ids)))
    await completeChanges(tx, changes, { cause: 'record', by, silent })
  }
  return taken
}

/** Takes events from the queue. `records`: by kind and id, who changed them last. An event of no record has none. */
async function takeChanges(tx: Tenant, eventIds: string[]) {
  const { rows } = await tx.trx.raw<{
    rows: { name: string | null; subject_id: string | null; actor: Actor; cause: string | null }[]
  }>(
    `with waiting as (
       select id from list_changes where organization_id = :organizationId and id = any(cast(:eventIds as uuid[]))
       order by id for update skip locked),
     taken as (
       delete from list_changes c using waiting w where c.organization_id = :organizationId and c.id = w.id
       returning c.id)
     select e.name, e.subject_id, e.actor, e.cause
     from taken t left join events e on e.organization_id = :organizationId and e.id = t.id order by t.id`,
    { organizationId: tx.organizationId, eventIds },
  )
  const records = new Map<KindName, Map<string, ChangedBy>>()
  for (const { name, subject_id, actor, cause } of rows) {
    const kind = name === null ? undefined : kindNamed(name.split('.')[0]!)
    if (!kind || subject_id === null) continue
    const of = records.get(kind) ?? new Map<string, ChangedBy>()
    records.set(kind, of.set(subject_id, { actor, run: cause }))
  }
  return { taken: rows.length, records }
}

/** Locks the lists of these kinds, in one order: others change their members before or after. */
async function lockLists(tx: Tenant, entities: KindName[]): Promise<ComparedList[]> {
  if (entities.length === 0) return []
  return tx
    .trx('lists')
    .where({ organization_id: tx.organizationId })
    .whereIn('entity', entities)
    .whereNull('deleted_at')
    .orderBy('id')
    .forNoKeyUpdate()
    .select<ComparedList[]>(COMPARED)
}

/** How long after a problem all records are compared again, in minutes. */
const AGAIN_MINUTES = 60

/**
 * Compares records with the filter of a locked list. A filter that cannot be compared is a problem of its list alone: it
 * is noted, and all records are compared later. @returns the changes; none with a problem.
 */
export async function settleOrNote(tx: Tenant, list: ComparedList, ids: string[]): Promise<MemberChange[]> {
  try {
    return await savepoint(tx, (inner) =>
      settleFilterList(inner, { ...list, selection: list.selection! }, ids),
    )
  } catch (error) {
    const problem = problemOf(error)
    if (problem === undefined) throw error
    await tx
      .trx('lists')
      .where({ organization_id: tx.organizationId, id: list.id })
      .update({
        problem,
        after_id: null,
        // Not put off by each further record.
        due_at: tx.trx.raw(
          `case when problem is not null and due_at > now() then due_at else now() + interval '${AGAIN_MINUTES} minutes' end`,
        ),
      })
    return []
  }
}

function problemOf(error: unknown): string | undefined {
  if (error instanceof AppError) return fullMessage(error)
  if (isStatementTimeout(error)) return 'the filter takes too long'
  return isRefusal(error) ? 'the database refused the filter' : undefined
}
