import type { NodeAt } from '../../workflows/bundle/protocol.ts'
import type { CreatedObject, RunNode, RunState } from '../../workflows/interpret/run-state.ts'
import { TURNS } from '../../workflows/language/node-error.ts'
import { ORGANIZATION_DEFAULTS } from '../access/organization.ts'
import { limitSql, planLimitSql } from '../access/plans.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type AttemptResult, begun, ended, withdrawn } from './attempts.ts'
import { refreshStopping } from './commands.ts'
import { rewindLoops } from './loops.ts'
import { ANSWERABLE, rewindWaits } from './waits.ts'

/** SQL: the time zone of the organization `o`. */
export const TIMEZONE = `coalesce(o.settings ->> 'timezone', '${ORGANIZATION_DEFAULTS.timezone}')`

/** SQL: the values of the placeholder root `org`, of the organization `o`. */
export const ORGANIZATION_FACTS = `jsonb_build_object('id', o.id, 'name', o.name,
         'currency', coalesce(o.settings ->> 'currency', '${ORGANIZATION_DEFAULTS.currency}'),
         'timezone', ${TIMEZONE})`

/** SQL: whether an iteration `i` of the run `r` is open, and among `:paths`, unless these are null. */
const IS_OPEN = `i.organization_id = r.organization_id and i.run_id = r.id and i.settled_segment is null
          and (cast(:paths as text[]) is null or i.path = any(:paths))`

/** SQL: the open iterations of the run `r`. */
const OPEN_ITERATIONS = `(select coalesce(jsonb_agg(to_jsonb(i) - 'organization_id' - 'run_id' - 'path'), '[]')
        from run_iterations i where ${IS_OPEN})`

/** SQL: the open loops of the run `r`, without their items. */
const OPEN_LOOPS = `(select coalesce(jsonb_agg(jsonb_build_object('loop', l.loop, 'count', l.count, 'next', l.next,
          'succeeded', l.succeeded, 'failed', l.failed, 'bytes', l.bytes, 'concurrency', l.concurrency,
          'on_item_error', l.on_item_error, 'segment', l.segment)), '[]')
        from run_loops l where l.organization_id = r.organization_id and l.run_id = r.id and l.open)`

/**
 * SQL: the nodes of the run `r` outside of any loop and in its open iterations. `offset 0` makes each path an index
 * look-up.
 */
const NODES = `(select coalesce(jsonb_agg(to_jsonb(n) - 'organization_id' - 'run_id' - 'progress' - 'attempts' order by n.position), '[]')
        from (select '' as path union all
          select i.path from run_iterations i where ${IS_OPEN}) p
        cross join lateral (
          select * from run_nodes n
          where n.organization_id = r.organization_id and n.run_id = r.id and n.path = p.path offset 0) n)`

/** SQL: the last segment of the run `r` that a Temporal run has recorded. */
const LAST_OF = (temporalRunId: string) => `(select max(s.segment) from run_segments s
        where s.organization_id = r.organization_id and s.run_id = r.id and s.temporal_run_id = ${temporalRunId})`

/**
 * Locks the row of a run until the transaction ends, and loads it with all its open nodes and loops. Undefined if it does
 * not exist.
 * @param path loads the nodes that a node of this path can read, instead of those of all open iterations.
 */
export async function lockRun(
  tx: Tenant,
  id: string,
  segment: { temporal_run_id: string; segment: number } | undefined,
  path?: string,
): Promise<RunState | undefined> {
  // A statement reads other tables as of its beginning: one that waits for the lock would not see what the transaction
  // that held it has committed, such as an attempt that begins, or the same segment, made by a worker that was slow.
  await tx.trx.raw('select from runs where organization_id = ? and id = ? for update', [
    tx.organizationId,
    id,
  ])
  const { rows } = await tx.trx.raw<{ rows: RunState[] }>(
    `select to_jsonb(r) - 'outputs' - 'error' as run, ${LAST_OF('r.temporal_run_id')} as owner_last,
       case when r.ended_at is not null then r.error end as error,
       ${ORGANIZATION_FACTS} as organization, o.env, o.pools, o.storage_full,
       ${planLimitSql('run_bytes')} as most_bytes,
       ${limitSql('max_call_seconds')} as max_call_seconds,
       ${OPEN_ITERATIONS} as iterations,
       ${OPEN_LOOPS} as loops,
       ${NODES} as nodes,
       (select jsonb_build_object('answer', s.answer, 'happened', s.happened) from run_segments s
        where s.organization_id = r.organization_id and s.run_id = r.id
          and s.temporal_run_id = :temporalRunId and s.segment = :segment) as recorded,
       ${LAST_OF(':temporalRunId')} as last
     from runs r join organizations o on o.id = r.organization_id
     where r.organization_id = :organizationId and r.id = :id
     for update of r`,
    {
      organizationId: tx.organizationId,
      id,
      paths: path === undefined ? null : pathsTo(path),
      temporalRunId: segment?.temporal_run_id ?? '',
      segment: segment?.segment ?? -1,
    },
  )
  return rows[0]
}

/** The path of a frame, and those of the frames around it. */
const pathsTo = (path: string) => path.split('/').map((_, n, parts) => parts.slice(0, n + 1).join('/'))

/** SQL: whether an attempt had begun whose outcome no longer can be recorded, once its token is replaced. */
const UNREPORTED = 'may_have_called or attempt_token is not null'

/**
 * Makes an attempt, which begins, the owner of the row of an external node. An earlier attempt, whose worker died or lost
 * its connection to Temporal, can then no longer write to it.
 * @returns what an earlier attempt has kept.
 */
export async function beginAttempt(tx: Tenant, node: NodeOf, token: string): Promise<KeptProgress | null> {
  const [row] = await runningNode(tx, node).update(
    {
      may_have_called: tx.trx.raw(UNREPORTED),
      attempt_token: token,
      next_attempt_at: null,
      slot_wanted_at: null,
      attempts: begun(tx),
    },
    ['progress'],
  )
  return row?.progress ?? null
}

/** What the attempts of an external node keep for the next one. */
export interface KeptProgress {
  /** The attempts before the failure that was the first one of what remains: they no longer count. */
  before: number
  value: unknown
}

/**
 * Ends the ownership of an attempt whose worker died before its end, so that a run whose pause was requested does not
 * wait for it.
 */
export async function releaseAttempt(tx: Tenant, node: NodeOf): Promise<void> {
  await refreshStopping(tx, node.run_id)
  await runningNode(tx, node).update({ attempt_token: null, may_have_called: tx.trx.raw(UNREPORTED) })
}

/**
 * Shows that a node waits for a slot to make its call. No attempt of it is in progress. `givenUp`: its last one found
 * its service without a free slot, and was given up before the call.
 */
export async function markSlotWanted(tx: Tenant, node: NodeOf, givenUp: boolean): Promise<void> {
  await refreshStopping(tx, node.run_id)
  await runningNode(tx, node).update({
    attempt_token: null,
    ...(givenUp ? { attempts: withdrawn(tx) } : { may_have_called: tx.trx.raw(UNREPORTED) }),
    slot_wanted_at: tx.trx.raw('coalesce(slot_wanted_at, now())'),
  })
}

/** A node of a run. */
type NodeOf = NodeAt & { run_id: string }

/** The row of an external node while the node is running. */
const runningNode = (tx: Tenant, { run_id, path = '', node }: NodeOf) =>
  tx.trx('run_nodes').where({
    organization_id: tx.organizationId,
    run_id,
    path,
    node_id: node,
    status: 'running',
  })

/**
 * Updates the row of an external node, for the attempt that owns it. `next` is the number and the time of the next
 * attempt, if one is due. @returns false if the run has ended the node, or another attempt owns it.
 */
export async function updateNode(
  tx: Tenant,
  node: NodeOf,
  token: string,
  change: Partial<Pick<RunNode, 'status' | 'input' | 'output' | 'handle' | 'error' | 'ended_at'>> & {
    next?: { attempt: number; at: Date }
    progress?: KeptProgress | null
    /** The end of the attempt; null if it only waited for its turn. */
    result: AttemptResult | null
  },
): Promise<boolean> {
  const { next, result, ...values } = change
  const json = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value))
  const columns = {
    ...values,
    ...(next !== undefined && {
      attempt: next.attempt,
      next_attempt_at: next.at,
      attempt_token: null,
      // An attempt that only waited does not tell whether the attempt lost before it had made its call.
      may_have_called: tx.trx.raw('may_have_called and attempt = ?', [next.attempt]),
    }),
    input: json(change.input),
    output: json(change.output),
    progress: change.progress === null ? null : json(change.progress),
    error: change.error === null ? null : json(change.error),
    attempts: result ? ended(tx, result) : withdrawn(tx),
  }
  const count = await runningNode(tx, node)
    .andWhere({ attempt_token: token })
    .update(Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined)))
  return count > 0
}

/**
 * Marks the run as sleeping, so not active, if it waits only for times or turns. Segments mark it too, but do not see
 * failed attempts. Locks the run before its nodes, as segments do.
 */
export async function sleepForTurns(tx: Tenant, runId: string): Promise<void> {
  const run = { organizationId: tx.organizationId, runId }
  await tx.trx.raw('select from runs where organization_id = :organizationId and id = :runId for update', run)
  await tx.trx.raw(
    `update runs r set sleeps_until = open.until
     from (select min(case when n.status = 'running' then n.next_attempt_at else n.wait_until end) as until,
         bool_and(n.status = 'waiting' or ${WAITS_FOR_TURN}) as sleeps
       from run_nodes n where n.organization_id = :organizationId and n.run_id = :runId
         and n.status in ('running', 'waiting')) open
     where r.organization_id = :organizationId and r.id = :runId and r.status = 'running'
       and open.sleeps and open.until > now()`,
    run,
  )
}

/** SQL: whether the node `n` waits for the turn of its mail or call. */
export const WAITS_FOR_TURN = `(n.status = 'running' and n.next_attempt_at > now()
  and n.error ->> 'code' in (${TURNS.map((code) => `'${code}'`).join(', ')}))`

/** Whether an attempt owns the row of an external node, and the node still runs. */
export async function ownsAttempt(tx: Tenant, node: NodeOf, token: string): Promise<boolean> {
  return (await runningNode(tx, node).andWhere({ attempt_token: token }).first('node_id')) !== undefined
}

/** Whether a Temporal run has recorded a segment of this run. If it has but does not own the row, it is superseded. */
export async function hasOwned(tx: Tenant, runId: string, temporalRunId: string): Promise<boolean> {
  const segment = await tx
    .trx('run_segments')
    .where({ organization_id: tx.organizationId, run_id: runId, temporal_run_id: temporalRunId })
    .first('segment')
  return segment !== undefined
}

/**
 * Reverts the node rows that the previous Temporal run wrote from this segment on; effects on records and events stay.
 * Nodes for which the new Temporal run still waits are reopened. An ended external node keeps its result, which is
 * reported to the new run.
 */
export async function rewind(tx: Tenant, runId: string, segment: number): Promise<void> {
  const key = { organization_id: tx.organizationId, run_id: runId }
  await rewindWaits(tx, runId, segment)
  // The outcome was decided in a segment that is reverted.
  await tx.trx.raw(
    `update runs set ending = null
     where organization_id = ? and id = ? and cast(ending ->> 'segment' as integer) >= ?`,
    [key.organization_id, runId, segment],
  )
  await tx.trx('run_nodes').where(key).andWhere('segment', '>=', segment).delete()
  await rewindLoops(tx, runId, segment)
  // Nodes cancelled by the sweep have no segment.
  const reopened = () =>
    tx
      .trx('run_nodes')
      .where(key)
      .andWhere((row) =>
        row.where('settled_segment', '>=', segment).orWhere({ settled_segment: null, status: 'cancelled' }),
      )
  const open = { settled_segment: null, handle: null, ended_at: null }
  await reopened()
    .whereNotNull('wait_until')
    .update({ ...open, status: 'waiting' })
  const waits = () =>
    tx
      .trx('run_waits as w')
      .whereRaw(
        'w.organization_id = run_nodes.organization_id and w.run_id = run_nodes.run_id and w.path = run_nodes.path and w.node_id = run_nodes.node_id',
      )
  // The answers of waiting nodes are read again.
  await reopened()
    .whereExists(waits().whereIn('w.type', ANSWERABLE))
    .update({ ...open, status: 'waiting', output: null, error: null })
  await reopened()
    .where({ status: 'cancelled' })
    .whereExists(waits())
    .update({ ...open, status: 'waiting' })
  await reopened()
    .where({ status: 'cancelled' })
    .update({ ...open, status: 'running' })
  await reopened().update({ settled_segment: null })
}

/** The objects that a node of a run created before a reset. */
export function listCreated(
  tx: Tenant,
  runId: string,
  node: Pick<CreatedObject, 'path' | 'node_id'>,
): Promise<CreatedObject[]> {
  return tx
    .trx('run_effects')
    .where({ organization_id: tx.organizationId, run_id: runId, ...node })
    .select<CreatedObject[]>('path', 'node_id', 'n', 'object', 'object_id', 'result')
}

/**
 * Records that a segment failed. From the third attempt on, the row has the reason, until a segment succeeds.
 * `temporalRun.newest`: Temporal reports it as the newest run of its workflow. Its failures count before it owns the row:
 * if the first segment of a resumed, continued or reset workflow fails, the transfer of the row is rolled back.
 * @returns the number of consecutive unexpected failures; undefined if the run has ended or has another owner.
 */
export async function recordFailure(
  tx: Tenant,
  runId: string,
  failure: {
    temporalRun: { id: string; newest: boolean }
    attempt: number
    reason: string
    unexpected: boolean
  },
): Promise<number | undefined> {
  const { rows } = await tx.trx.raw<{ rows: { failures: number }[] }>(
    `update runs set failures = failures + :counted, updated_at = now(),
       stuck_reason = case when greatest(:attempt, failures + :counted) >= 3 then :reason else stuck_reason end
     where organization_id = :organizationId and id = :runId
       and case when temporal_run_id is null or temporal_run_id = :temporalRunId then status in ('queued', 'running')
         else :newest and not exists (select from run_segments s where s.organization_id = runs.organization_id
           and s.run_id = runs.id and s.temporal_run_id = :temporalRunId) end
     returning failures`,
    {
      organizationId: tx.organizationId,
      runId,
      temporalRunId: failure.temporalRun.id,
      newest: failure.temporalRun.newest,
      attempt: failure.attempt,
      reason: failure.reason,
      counted: failure.unexpected ? 1 : 0,
    },
  )
  return rows[0]?.failures
}
