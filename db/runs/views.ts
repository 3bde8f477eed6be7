import type { Knex } from 'knex'
import type { Ending, RunError, RunIteration, RunTrigger } from '../../workflows/interpret/run-state.ts'
import type { CleanupRole } from '../../workflows/language/definition.ts'
import { CALL_TURN } from '../../workflows/language/node-error.ts'
import type { NodeStatus, RunStatus } from '../../workflows/shared/statuses.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { type Count, totalOfRows } from '../lists/total.ts'
import { notFound } from '../model/errors.ts'
import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import type { RunKeys } from '../model/runs/run-keys.ts'
import { isOpenRun } from '../model/runs/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { traceText } from '../postgres/trace.ts'
import { ACTIVE_RUNS, ORGANIZATION_LIMIT, runningInLane } from './admission.ts'
import { ATTEMPTS, type NodeAttempt } from './attempts.ts'
import { filteredRuns, type RunFilter } from './filter.ts'
import type { RunMigration } from './migrate.ts'
import { WAITS_FOR_TURN } from './state.ts'

/** A run in a list: without inputs and outputs. */
export interface RunSummary {
  id: string
  workflow_id: string
  workflow_version: number
  workflow_name: string
  status: RunStatus
  trigger: RunTrigger
  record_id: string | null
  parent_run_id: string | null
  retry_of: string | null
  stuck_reason: string | null
  expected_by: Date | null
  late_at: Date | null
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}

export interface RunDetails extends RunSummary {
  inputs: Record<string, unknown>
  outputs: Record<string, unknown> | null
  error: RunError | null
  /**
   * For a retry: the original run, and the node that the retry starts with (null: from the start), with the items if
   * they were named.
   */
  retry: { run_id: string; from_node: string | null; items?: string[] } | null
  /** The oldest first. */
  migrations: RunMigration[]
  trace_id: string
  cancel_requested_at: Date | null
  /** Why it could last not be compared with an event of `cancel_on`. */
  cancel_problem: { message: string; event: string; event_id: string; at: string } | null
  pause_requested_at: Date | null
  /** Its outcome, while its cleanup nodes run. */
  ending: Pick<Ending, 'status' | 'error' | 'at'> | null
  /** The cause of the wait of a queued run, or of a call of a running one; else null. */
  waiting_for: WaitingFor | null
  /** When a queued run that waits for a time is looked at again. */
  starts_at: Date | null
  /** The key that its start gave. */
  key: string | null
  /** The rendered keys of its workflow's settings, by setting. */
  keys: RunKeys
}

/**
 * A queued run waits for the end of its `predecessor`, which is being cancelled; then for its `debounce`, its `rate` or a
 * slot of its `key`; then for a free slot of its workflow, of its organization, or of the workers; a running one for a
 * `slot` for one of its calls (`activities/slots/`), or for the turn of a mail (`db/mails/turns.ts`).
 */
export const WAITING_FOR = [
  'predecessor',
  'debounce',
  'rate',
  'key',
  'workflow',
  'organization',
  'workers',
  'slot',
  'mail_turn',
] as const
export type WaitingFor = (typeof WAITING_FOR)[number]

/** SQL: which turn the node `n` waits for. */
const TURN_OF = `case n.error ->> 'code' when '${CALL_TURN}' then 'rate' else 'mail_turn' end`

const WAITS_FOR = `case when runs.status = 'queued' then
    case when runs.hold <> 'admission' then runs.hold
      when ${runningInLane('runs', 'coalesce(runs.concurrency, 0)')} >= runs.concurrency then 'workflow'
      when (select ${ACTIVE_RUNS} >= ${ORGANIZATION_LIMIT} from organizations o where o.id = runs.organization_id)
        then 'organization'
      else 'workers' end
    when runs.status = 'running' and exists (select from run_nodes n where n.organization_id = runs.organization_id
      and n.run_id = runs.id and n.slot_wanted_at is not null and n.status = 'running') then 'slot'
    when runs.status = 'running' and exists (select from run_nodes n where n.organization_id = runs.organization_id
      and n.run_id = runs.id and ${WAITS_FOR_TURN}) then (
        select ${TURN_OF} from run_nodes n where n.organization_id = runs.organization_id and n.run_id = runs.id
          and ${WAITS_FOR_TURN} order by n.next_attempt_at limit 1)
  end as waiting_for`

export interface RunNodeView {
  /** The iteration of the node: '' outside of any loop. */
  path: string
  node_id: string
  node_type: string
  title: string
  status: NodeStatus
  attempt: number
  /** The time of the next attempt, if one has failed. */
  next_attempt_at: Date | null
  /**
   * `slot`: its call waits for a free slot of a worker; `mail_turn`, `rate`: its mail, or its call, waits for its turn.
   */
  waiting_for: 'slot' | 'mail_turn' | 'rate' | null
  input: unknown
  output: unknown
  handle: string | null
  error: RunError | null
  wait_until: Date | null
  started_at: Date
  ended_at: Date | null
  /** The progress of a loop node. */
  loop: LoopView | null
  /** Only of a cleanup node. */
  role: CleanupRole | null
  /** Only of an `undo` node: the node whose effect it compensates. */
  undoes: string | null
  /** Only of an external node: its last attempts. */
  attempts: NodeAttempt[]
}

export interface LoopView {
  loop: string
  count: number
  started: number
  succeeded: number
  failed: number
}

/** An opened item of a loop. */
export interface IterationView {
  path: string
  index: number
  status: RunIteration['status']
  item: unknown
  output: unknown
  error: RunError | null
  started_at: Date
  ended_at: Date | null
}

const SUMMARY = [
  'id',
  'workflow_id',
  'workflow_version',
  'workflow_name',
  'status',
  'trigger',
  'record_id',
  'parent_run_id',
  'retry_of',
  'stuck_reason',
  'expected_by',
  'late_at',
  'created_at',
  'started_at',
  'ended_at',
]

/** SQL: the outcome of an open run whose cleanup has begun. */
const ENDING = `case when ended_at is null and ending is not null then jsonb_build_object(
  'status', ending -> 'status', 'error', ending -> 'error', 'at', ending -> 'at') end as ending`

/** Throws `not_found`. */
export async function getRun(tx: Tenant, id: string): Promise<RunDetails> {
  const run = await ofKind(tx, 'run')
    .andWhere({ id })
    .first<RunDetails | undefined>(
      ...SUMMARY,
      'inputs',
      'outputs',
      'error',
      'retry',
      tx.trx.raw(`coalesce(migrations, '[]') as migrations`),
      'cancel_requested_at',
      'cancel_problem',
      'pause_requested_at',
      'run_key as key',
      tx.trx.raw(ENDING),
      tx.trx.raw(WAITS_FOR),
      tx.trx.raw(
        `case when status = 'queued' and hold in ('debounce', 'rate') then hold_until end as starts_at`,
      ),
      tx.trx.raw(`coalesce(keys, '{}') as keys`),
      tx.trx.raw(`${traceText('trace_id')} as trace_id`),
    )
  if (!run) throw notFound('run')
  return run
}

export interface RunKey {
  organizationId: string
  id: string
}

export type RunEnd = Pick<RunDetails, 'status' | 'outputs' | 'error'>

/**
 * The ends of runs of any organization, by id, without runs in progress. One statement without a transaction serves all
 * waiting requests, hence the system role.
 */
export async function getRunEnds(system: Knex, runs: RunKey[]): Promise<Map<string, RunEnd>> {
  const organizationIds = runs.map((run) => run.organizationId)
  const ids = runs.map((run) => run.id)
  const end = 'select r.id, r.status, r.outputs, r.error'
  const { rows } = await (runs.length === 1
    ? // A single run: the statement for lists is planned again for each list, which takes as long as running it.
      system.raw<{ rows: (RunEnd & { id: string })[] }>(
        `${end} from runs r where r.organization_id = ? and r.id = ? and r.ended_at is not null`,
        [organizationIds[0]!, ids[0]!],
      )
    : system.raw<{ rows: (RunEnd & { id: string })[] }>(
        `${end} from unnest(:organizationIds::uuid[], :ids::uuid[]) as wanted (organization_id, id)
         join runs r on r.organization_id = wanted.organization_id and r.id = wanted.id
         where r.ended_at is not null`,
        { organizationIds, ids },
      ))
  return new Map(rows.map(({ id, ...end }) => [id, end]))
}

const LOOP = `(select jsonb_build_object('loop', l.loop, 'count', l.count, 'started', greatest(l.next, l.succeeded + l.failed),
    'succeeded', l.succeeded, 'failed', l.failed)
  from run_loops l
  where l.organization_id = run_nodes.organization_id and l.run_id = run_nodes.run_id
    and l.loop = ltrim(run_nodes.path || '/' || run_nodes.node_id, '/')) as loop`

/**
 * SQL: the time of the next attempt. A node that was cancelled before keeps it, in case that a reset reopens the node.
 */
export const NEXT_ATTEMPT = `case when status = 'running' then next_attempt_at end as next_attempt_at`

/** SQL: what the call of a node waits for. */
export const NODE_WAITS_FOR = `case when status = 'running' and slot_wanted_at is not null then 'slot'
  when ${WAITS_FOR_TURN.replaceAll('n.', '')} then ${TURN_OF.replaceAll('n.', '')} end as waiting_for`

/** Nodes of the iteration `path` in the order of execution. Default: nodes outside of any loop. */
export function getRunNodes(tx: Tenant, runId: string, path = ''): Promise<RunNodeView[]> {
  return tx
    .trx('run_nodes')
    .where({ organization_id: tx.organizationId, run_id: runId, path })
    .orderBy('position')
    .select<RunNodeView[]>(
      'path',
      'node_id',
      'node_type',
      'title',
      'status',
      'attempt',
      'input',
      'output',
      'handle',
      'error',
      'wait_until',
      'started_at',
      'ended_at',
      'role',
      'undoes',
      tx.trx.raw(NEXT_ATTEMPT),
      tx.trx.raw(NODE_WAITS_FOR),
      tx.trx.raw(LOOP),
      tx.trx.raw(ATTEMPTS),
    )
}

/** The opened items of a loop, in the order of its list. Throws `invalid_request` for a cursor of another list. */
export async function listIterations(
  tx: Tenant,
  filter: { run_id: string; loop: string; status?: RunIteration['status'] | undefined },
  { limit, offset, cursor }: IdPage,
  count: Count,
): Promise<Page<IterationView>> {
  const { run_id, loop, status } = filter
  const hash = queryHash(['iterations', run_id, loop, status])
  const rows = tx
    .trx('run_iterations')
    .where({ organization_id: tx.organizationId, run_id, loop, ...(status && { status }) })
  const page = rows
    .clone()
    .orderBy('index')
    .limit(limit + 1)
    .offset(offset)
  if (cursor !== undefined)
    page.andWhere('index', '>', Number(decodeCursor(hash, cursor, (text) => /^\d{1,9}$/.test(text)).value))
  const found = await page.select<IterationView[]>(
    'path',
    'index',
    'status',
    'item',
    'output',
    'error',
    'started_at',
    'ended_at',
  )
  const data = found.slice(0, limit)
  const has_more = found.length > limit
  const last = has_more && data.at(-1)
  return {
    data,
    limit,
    offset,
    has_more,
    next_cursor: last ? encodeCursor(hash, { value: String(last.index), id: run_id }) : null,
    ...(await totalOfRows(tx.trx, rows, count)),
  }
}

/** Duration of a run or a node in milliseconds; null until it has ended. */
export const durationOf = ({ started_at, ended_at }: { started_at: Date | null; ended_at: Date | null }) =>
  started_at && ended_at ? ended_at.getTime() - started_at.getTime() : null

/** The log of a tested node. `time` is ISO 8601. */
export type TestLog = { time: string; message: string }[]

/**
 * The result of a node test: its node, or its error if it has no node, and its log. Undefined while it is in progress.
 */
export async function getNodeTest(
  tx: Tenant,
  id: string,
): Promise<{ node?: RunNodeView; error?: RunError | null; log: TestLog } | undefined> {
  const test = await ofKind(tx, 'node_test')
    .andWhere({ id })
    .first<Pick<RunDetails, 'status' | 'error'> & { outputs: { log: TestLog } | null }>(
      'status',
      'error',
      'outputs',
    )
  if (!test || isOpenRun(test.status)) return undefined
  const log = test.outputs?.log ?? []
  const [node] = await getRunNodes(tx, id)
  if (node) return { node, error: node.error, log }
  return { error: test.error ?? { code: test.status, message: `The test is ${test.status}.` }, log }
}

/** Runs, newest or oldest first, by `order`. */
export async function listRuns(
  tx: Tenant,
  filter: RunFilter,
  page: IdPage,
  { order, count }: { order: 'asc' | 'desc'; count: Count },
): Promise<Page<RunSummary>> {
  const { query } = await filteredRuns(tx, filter)
  return pageById(tx, query.select(SUMMARY), page, { of: ['runs', filter], order, count })
}

/** Runs by their ids. */
export async function runSummaries(tx: Tenant, ids: string[]): Promise<Map<string, RunSummary>> {
  const rows = await ofKind(tx, 'run').whereIn('id', ids).select<RunSummary[]>(SUMMARY)
  return new Map(rows.map((run) => [run.id, run]))
}

const ofKind = (tx: Tenant, kind: 'run' | 'node_test') =>
  tx.trx('runs').where({ organization_id: tx.organizationId, kind })
