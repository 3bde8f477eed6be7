import type { AnsweredNode } from '../../workflows/interpret/run-state.ts'
import type { NewWait } from '../../workflows/interpret/segment.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { defineQueue } from '../queue/queue.ts'
import { takeSignal } from './signals.ts'

/** The key of a wait. A node that waits again after a reset has a wait with another id. */
export interface WaitKey {
  organization_id: string
  run_id: string
  path: string
  node_id: string
  id: string
}

/** The types of waits that are answered from outside of the run. `child_run` is in children.ts; a timer has no row. */
export const ANSWERABLE = ['event', 'decision', 'signal'] as const
export type AnswerableType = (typeof ANSWERABLE)[number]

/** SQL: the columns of `WaitKey`, for RETURNING and joins. */
export const WAIT_KEY = 'organization_id, run_id, path, node_id, id'

/** A new wait for an answer. */
export type WaitToInsert = Pick<NewWait, 'path' | 'node_id'> &
  Extract<NewWait, { values: unknown }> & { id: string }

/**
 * Records that nodes of a run wait for answers. A kept signal answers at once. The relay looks for earlier events after
 * the commit, so that no event can come between the look-up and the wait.
 */
export async function insertWaits(tx: Tenant, runId: string, waits: WaitToInsert[]): Promise<void> {
  if (waits.length === 0) return
  await tx.trx.raw(
    `insert into run_waits (organization_id, run_id, path, node_id, id, type, name, topics, subject_id, filter, since,
       settings, expires_at, due_at)
     select r.organization_id, r.id, w.path, w.node_id, w.id, w.type, w.name, w.topics, w.subject_id, w.filter,
       -- events of the nodes before it are as old as this transaction, and do not count
       case w.since when 'run_start' then ${STARTED_AT} when 'now' then now() end,
       w.settings, w.expires_at, case w.type when 'event' then now() else w.due_at end
     from jsonb_to_recordset(cast(:waits as jsonb)) as w(path text, node_id text, id uuid, type text, name text,
       topics text[], subject_id uuid, filter text, since text, settings jsonb, expires_at timestamptz, due_at timestamptz)
     join runs r on r.organization_id = :organizationId and r.id = :runId
     on conflict (organization_id, run_id, path, node_id) do update set id = excluded.id, type = excluded.type,
       name = excluded.name, topics = excluded.topics, subject_id = excluded.subject_id, filter = excluded.filter,
       since = excluded.since, checked_id = null, settings = excluded.settings, problem = null,
       expires_at = excluded.expires_at, due_at = excluded.due_at, answer = null, answered_by = null, answered_at = null,
       lease_until = null, notified_at = null, created_at = now()`,
    { organizationId: tx.organizationId, runId, waits: JSON.stringify(waits.map(rowOf)) },
  )
  if (waits.some((wait) => wait.for.type === 'event')) tx.wake('agx_due_waits')
  for (const wait of waits)
    if (wait.for.type === 'signal') await takeSignal(tx, runId, { ...wait, name: wait.for.name })
}

/**
 * SQL: the id of the event that triggered the run `r`; null for a run that something else started, and for a retry. The
 * place of the event in the outbox and its time count as the start of the run: the row of the run is inserted only when
 * the event is matched.
 */
export const TRIGGER_EVENT = `case when r.trigger ->> 'type' = 'event' then cast(r.trigger_key as uuid) end`

/** SQL: the time of the start of the run `r`: that of the event that triggered it, else that of its row. */
const STARTED_AT = `coalesce((select e.created_at from events e
  where e.organization_id = r.organization_id and e.id = ${TRIGGER_EVENT}), r.created_at)`

/**
 * SQL: whether the event `e` came after the `since` of the wait `w` of the run `r`. What one transaction wrote has one
 * time: ids decide there which events came after the start of the run.
 */
export const IS_SINCE = `(e.created_at > w.since or e.created_at = w.since
  and w.since = ${STARTED_AT} and e.id > coalesce(${TRIGGER_EVENT}, r.id))`

function rowOf({ path, node_id, id, for: wait, values }: WaitToInsert) {
  const common = { path, node_id, id, type: wait.type, expires_at: wait.expires_at }
  if (wait.type === 'signal') return { ...common, name: wait.name }
  if (wait.type === 'event') {
    const { events, record_id, filter, since } = wait
    const topics = [...new Set(events)].map((name) => (record_id ? `${name}:${record_id}` : name))
    return { ...common, topics, subject_id: record_id, filter, since, settings: filter ? { values } : null }
  }
  const { title, message, assignees, escalate_to, notices } = wait
  return { ...common, settings: { title, message, assignees, escalate_to, notices }, due_at: notices[0]?.at }
}

type NodeOfRun = { path: string; node_id: string }

const keysOf = (nodes: NodeOfRun[]) => nodes.map(({ path, node_id }) => [path, node_id])

/** Expires the unanswered waits of nodes whose timers have fired. */
export async function expireWaits(tx: Tenant, runId: string, nodes: NodeOfRun[]): Promise<void> {
  if (nodes.length === 0) return
  await tx
    .trx('run_waits')
    .where({ organization_id: tx.organizationId, run_id: runId, answered_at: null })
    .whereIn('type', ANSWERABLE)
    .whereIn(['path', 'node_id'], keysOf(nodes))
    .update(CLOSED(tx))
}

/** Closes the open waits of a run that has ended: later answers are refused. */
export async function closeWaits(tx: Tenant, runId: string): Promise<void> {
  await tx
    .trx('run_waits')
    .where({ organization_id: tx.organizationId, run_id: runId, answered_at: null })
    .whereIn('type', ANSWERABLE)
    .update(CLOSED(tx))
}

/** Closed without an answer, and as notified: the workflow closed the wait itself and needs no signal. */
const CLOSED = ({ trx }: Tenant) => ({ answered_at: trx.fn.now(), notified_at: trx.fn.now(), due_at: null })

/** The answered and expired waits of these nodes of a run. */
export async function listAnswered(tx: Tenant, runId: string, nodes: NodeOfRun[]): Promise<AnsweredNode[]> {
  const rows = await tx
    .trx('run_waits')
    .where({ organization_id: tx.organizationId, run_id: runId })
    .whereIn('type', ANSWERABLE)
    .whereIn(['path', 'node_id'], keysOf(nodes))
    .whereNotNull('answered_at')
    .orderBy('answered_at')
    .select<(Omit<AnsweredNode, 'answered_at'> & { answered_at: Date })[]>(
      'path',
      'node_id',
      'answer',
      'answered_by',
      'answered_at',
    )
  return rows.map((row) => ({ ...row, answered_at: row.answered_at.toISOString() }))
}

/**
 * Reverts waits after a reset to a segment. Waits of nodes that will start again are deleted, with the signals that
 * answered them. Waits of nodes that wait again are reopened, or keep their answers. Call it before the node rows are
 * changed.
 */
export async function rewindWaits(tx: Tenant, runId: string, segment: number): Promise<void> {
  const bindings = { organizationId: tx.organizationId, runId, segment }
  await tx.trx.raw(
    `with forgotten as (
       delete from run_waits w using run_nodes n
       where w.organization_id = :organizationId and w.run_id = :runId and w.type <> 'child_run'
         and n.organization_id = w.organization_id and n.run_id = w.run_id and n.path = w.path and n.node_id = w.node_id
         and n.segment >= :segment
       returning w.path, w.node_id)
     update run_signals s set consumed_at = null, consumed_path = null, consumed_node_id = null
     from forgotten f
     where s.organization_id = :organizationId and s.run_id = :runId and s.consumed_path = f.path
       and s.consumed_node_id = f.node_id`,
    bindings,
  )
  await tx.trx.raw(
    `update run_waits w set notified_at = null, lease_until = null,
       answered_at = case when w.answer is null then null else w.answered_at end,
       due_at = case when w.answer is not null then null when w.type = 'event' then now()
         else cast(w.settings #>> '{notices,0,at}' as timestamptz) end
     from run_nodes n
     where w.organization_id = :organizationId and w.run_id = :runId and w.type <> 'child_run'
       and n.organization_id = w.organization_id and n.run_id = w.run_id and n.path = w.path and n.node_id = w.node_id
       and n.segment < :segment and (n.settled_segment >= :segment or n.settled_segment is null)`,
    bindings,
  )
  tx.wake('agx_waits')
  tx.wake('agx_due_waits')
}

/** A wait that needs work before its answer. */
export interface DueWait extends WaitKey {
  type: AnswerableType
}

const WAITS = { table: 'run_waits', key: ['organization_id', 'run_id', 'path', 'node_id'] }

/** Open waits that are due. */
export const dueWaits = defineQueue<DueWait>({
  ...WAITS,
  waits: 'answered_at is null and due_at <= now()',
  order: 'due_at',
  returning: ['id', 'type'],
})

/** Answered waits whose runs must be signalled. */
export const answeredWaits = defineQueue<WaitKey>({
  ...WAITS,
  waits: 'answered_at is not null and notified_at is null',
  order: 'answered_at',
  returning: ['id'],
  done: { sets: 'notified_at = now()', same: ['id'], if: 'r.answered_at is not null' },
})
