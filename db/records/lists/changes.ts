import type { Knex } from 'knex'
import { keysOf } from '../../events/by-key.ts'
import type { Actor } from '../../model/actor.ts'
import { AppError, fullMessage } from '../../model/errors.ts'
import type { EventKey } from '../../model/events/event.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kindNamed, kindNames, kinds } from '../../model/records/kinds/index.ts'
import { isConflict, isDatabaseUnavailable, isRefusal, isStatementTimeout } from '../../postgres/sql-state.ts'
import { type System, savepoint, type Tenant } from '../../postgres/tenancy.ts'
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
 *
 * Others wait for the lists meanwhile, so the transaction is short: a filter that takes too long is left to a later pass
 * over all records (`passes.ts`), and until then no change is compared with it.
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

/** Up to `limit` organizations with queued events but for some, in random order: each has a turn, however slow others are. */
export async function listChangedOrganizations(
  system: System,
  limit: number,
  without: readonly string[] = [],
): Promise<string[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string }[] }>(
    // A skip scan of the primary key: the rows of one organization are not read to find the next.
    `with recursive organizations as (
       (select organization_id from list_changes order by organization_id limit 1)
       union all
       select next.* from organizations o cross join lateral (
         select c.organization_id from list_changes c where c.organization_id > o.organization_id
         order by c.organization_id limit 1) next)
     select organization_id from organizations where organization_id <> all(cast(:without as uuid[]))
     order by random() limit :limit`,
    { limit, without: [...without] },
  )
  return rows.map(({ organization_id }) => organization_id)
}

/** A list as workers compare records with it. */
export interface ComparedList {
  id: string
  name: string
  entity: KindName
  /** Null: a static list. */
  selection: Selection | null
  filled_at: Date | null
  problem: string | null
}

export const COMPARED = ['id', 'name', 'entity', 'selection', 'filled_at', 'problem'] as const

/** Called with an error that nobody expects of a filter, which is noted as a problem of the list. */
export type Report = (error: unknown, listId: string) => void

/**
 * Compares the records of the oldest queued events with the lists of their kinds. For an organization one worker at a time
 * does so; a second one would only wait for its locks. @returns the number of events; 0 also while another compares.
 */
export async function compareChanges(tx: Tenant, limit: number, report?: Report): Promise<number> {
  const until = performance.now() + ALL_MS
  if (!(await takeLock(tx))) return 0
  const { taken, records } = await takeChanges(tx, limit)
  const lists = await lockLists(tx, [...records.keys()])
  const silent = new Set(lists.flatMap(({ id, filled_at }) => (filled_at ? [] : id)))
  for (const [entity, by] of records) {
    const ids = [...by.keys()]
    const own = lists.filter((list) => list.entity === entity)
    const filtered = own.filter(({ selection }) => selection)
    const fixed = own.filter(({ selection }) => !selection)
    const changes = await settleStaticLists(tx, fixed, entity, ids)
    changes.push(...(await settleInTime(tx, filtered, ids, { until, report })))
    await completeChanges(tx, changes, { cause: 'record', by, silent })
  }
  return taken
}

/** In a statement of its own: the next one must see what the holder before has committed. */
async function takeLock({ trx, organizationId }: Tenant): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { locked: boolean }[] }>(
    `select pg_try_advisory_xact_lock(hashtextextended('agx list changes ' || cast(? as text), 0)) as locked`,
    [organizationId],
  )
  return rows[0]!.locked
}

/** Takes events from the queue. `records`: by kind and id, who changed them last. An event of no record has none. */
async function takeChanges(tx: Tenant, limit: number) {
  const { rows } = await tx.trx.raw<{
    rows: { name: string | null; subject_id: string | null; actor: Actor; cause: string | null }[]
  }>(
    `with taken as (
       delete from list_changes where organization_id = :organizationId and id = any(array(
         select id from list_changes where organization_id = :organizationId order by id limit :limit))
       returning id)
     select e.name, e.subject_id, e.actor, e.cause
     from taken t left join events e on e.organization_id = :organizationId and e.id = t.id order by t.id`,
    { organizationId: tx.organizationId, limit },
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

/**
 * Locks the lists of these kinds, in one order: others change their members before or after. Those with a problem are
 * left to the pass that is to come: it begins after all of these changes.
 */
async function lockLists(tx: Tenant, entities: KindName[]): Promise<ComparedList[]> {
  if (entities.length === 0) return []
  return tx
    .trx('lists')
    .where({ organization_id: tx.organizationId })
    .whereIn('entity', entities)
    .whereNull('deleted_at')
    .whereRaw('(problem is null or due_at <= now())')
    .orderBy('id')
    .forNoKeyUpdate()
    .select<ComparedList[]>(COMPARED)
}

/** The time limit of the comparison with one filter, which normally takes some milliseconds; and of a transaction's all. */
const FILTER_MS = 2_000
const ALL_MS = 5_000

/** How long after a problem all records are compared again, in minutes. */
const AGAIN_MINUTES = 60

/**
 * Compares records with the filters of locked lists. A filter that cannot be compared, or not before `until`, is a problem
 * of its list alone: it is noted, and all records are compared later. @returns the changes; none with a problem.
 */
export async function settleInTime(
  tx: Tenant,
  lists: readonly ComparedList[],
  ids: string[],
  { until = Number.POSITIVE_INFINITY, report }: { until?: number; report?: Report | undefined },
): Promise<MemberChange[]> {
  if (lists.length === 0 || ids.length === 0) return []
  // Those that had a problem come last, so that they do not use up the time of the others.
  const ordered = [...lists].sort((a, b) => Number(a.problem !== null) - Number(b.problem !== null))
  const changes: MemberChange[] = []
  await tx.trx.raw(`set local statement_timeout = ${FILTER_MS}`)
  for (const [place, list] of ordered.entries()) {
    if (performance.now() > until) {
      await note(tx, ordered.slice(place), 'the filters of all lists take too long together')
      break
    }
    changes.push(...(await settleOrNote(tx, list, ids, report)))
  }
  await tx.trx.raw('set local statement_timeout to default')
  return changes
}

async function settleOrNote(
  tx: Tenant,
  list: ComparedList,
  ids: string[],
  report?: Report,
): Promise<MemberChange[]> {
  try {
    return await savepoint(tx, (inner) =>
      settleFilterList(inner, { ...list, selection: list.selection! }, ids),
    )
  } catch (error) {
    // Not the fault of the filter: the transaction is repeated.
    if (isDatabaseUnavailable(error) || isConflict(error)) throw error
    const problem = problemOf(error)
    if (problem === undefined) report?.(error, list.id)
    await note(tx, [list], problem ?? 'the filter could not be compared')
    return []
  }
}

/** Ends a pass of these lists, too: it would miss changes that are not compared. */
async function note(tx: Tenant, lists: readonly ComparedList[], problem: string): Promise<void> {
  await tx
    .trx('lists')
    .where({ organization_id: tx.organizationId })
    .whereRaw('id = any(?::uuid[])', [lists.map(({ id }) => id)])
    .update({
      problem,
      after_id: null,
      due_at: tx.trx.raw(`now() + interval '${AGAIN_MINUTES} minutes'`),
    })
}

function problemOf(error: unknown): string | undefined {
  if (error instanceof AppError) return fullMessage(error)
  if (isStatementTimeout(error)) return 'the filter takes too long'
  return isRefusal(error) ? 'the database refused the filter' : undefined
}
