import { CATCHUP_WINDOW, type OverlapPolicy, type ScheduleSpec } from '../../workflows/language/definition.ts'
import { parseDuration } from '../../workflows/language/duration.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { skipScan } from '../queue/lanes.ts'
import { defineQueue } from '../queue/queue.ts'
import { endWaitingLease, lockSchedule, type ScheduleKey } from '../workflows/schedules.ts'
import { cancelRun, terminateRun } from './moves/ends.ts'
import { createScheduledRuns } from './scheduled.ts'

/**
 * What becomes of each time of a schedule: a row of `schedule_fires`. Temporal starts a workflow `fire` at each time,
 * which ends long before the run does. So the overlap policy is decided here, by the rows of the runs, under a lock on
 * the schedule: two times of a workflow are decided one after the other. A time that must wait is started by the relay.
 */

export const FIRE_STATUSES = ['waiting', 'started', 'skipped'] as const
export const FIRE_SOURCES = ['schedule', 'backfill'] as const

/** Why a time started no run. */
export const SKIP_REASONS = [
  'overlap',
  'superseded',
  'buffer_full',
  'catchup_window',
  'paused',
  'inactive',
] as const
export type SkipReason = (typeof SKIP_REASONS)[number]

export interface Fire {
  scheduled_at: Date
  source: (typeof FIRE_SOURCES)[number]
  status: (typeof FIRE_STATUSES)[number]
  run_id: string | null
  reason: SkipReason | null
  /** The run that was open when it was skipped. */
  open_run_id: string | null
  created_at: Date
  decided_at: Date | null
}

/** The waiting times of a schedule with `buffer_all`, at most. */
const MAX_WAITING = 1_000
/** Runs that one transaction queues. */
const PAGE = 25
/**
 * Queued runs of a workflow with which its waiting times wait on: more would be started no sooner, and six backfills
 * would write 60,000 rows as fast as the disk takes them, while the requests of all organizations wait for it.
 */
const AHEAD = 50

const SHOWN = [
  'scheduled_at',
  'source',
  'status',
  'run_id',
  'reason',
  'open_run_id',
  'created_at',
  'decided_at',
] as const

/**
 * Decides what becomes of a time. `startedAt`: when Temporal started to fire it, which is later than its worker began if
 * no worker lived; both ISO 8601. Repeated calls change nothing.
 * @returns undefined if the workflow has no Schedule.
 */
export async function fireSchedule(
  tx: Tenant,
  workflowId: string,
  { scheduledAt, startedAt }: { scheduledAt: string; startedAt: string },
): Promise<Fire | undefined> {
  const locked = await lockSchedule(tx, workflowId)
  if (!locked) return undefined
  const fires = firesOf(tx, workflowId).where({ scheduled_at: scheduledAt })
  const earlier = await fires.clone().first<Fire | undefined>(...SHOWN)
  if (earlier) return earlier
  const outcome =
    missed(locked, startedAt) ?? (await decide(tx, workflowId, new Date(scheduledAt), locked.schedule!))
  const started =
    outcome.status === 'started' &&
    (await createScheduledRuns(tx, workflowId, [{ scheduled_at: scheduledAt, source: 'schedule' }])).get(
      scheduledAt,
    )
  await tx.trx('schedule_fires').insert({
    organization_id: tx.organizationId,
    workflow_id: workflowId,
    scheduled_at: scheduledAt,
    source: 'schedule',
    ...outcome,
    ...(started ? { run_id: started } : {}),
    ...(outcome.status === 'waiting' ? {} : { decided_at: tx.trx.fn.now() }),
  })
  return fires.first<Fire>(...SHOWN)
}

type Outcome =
  | { status: 'started' | 'waiting' }
  | { status: 'skipped'; reason: SkipReason; open_run_id?: string | undefined }

interface Locked {
  schedule: ScheduleSpec | null
  paused: boolean
}

function missed({ schedule, paused }: Locked, startedAt: string): Outcome | undefined {
  if (!schedule) return { status: 'skipped', reason: 'inactive' }
  if (paused) return { status: 'skipped', reason: 'paused' }
  const window = parseDuration(schedule.catchup_window ?? CATCHUP_WINDOW)!
  if (Date.now() - Date.parse(startedAt) > window) return { status: 'skipped', reason: 'catchup_window' }
  return undefined
}

async function decide(
  tx: Tenant,
  workflowId: string,
  scheduledAt: Date,
  schedule: ScheduleSpec,
): Promise<Outcome> {
  const { overlap = 'allow_all' } = schedule
  if (overlap === 'allow_all') return { status: 'started' }
  await startNext(tx, workflowId, { schedule, paused: false })
  const open = await listOpen(tx, workflowId)
  if (overlap === 'cancel_other' || overlap === 'terminate_other') {
    // Not those of a backfill, which somebody asked for.
    const own = open.filter((run) => !run.backfill)
    return replaceOpen(tx, workflowId, scheduledAt, overlap, own)
  }
  const waiting = await countWaiting(tx, workflowId)
  if (open.length + waiting === 0) return { status: 'started' }
  if (overlap === 'skip' || (overlap === 'buffer_one' && waiting > 0))
    return { status: 'skipped', reason: 'overlap', open_run_id: open[0]?.id }
  if (waiting >= MAX_WAITING) return { status: 'skipped', reason: 'buffer_full', open_run_id: open[0]?.id }
  return { status: 'waiting' }
}

/** Ends the open runs of earlier times, and replaces the one that waits. A cancelled run may take a while to end. */
async function replaceOpen(
  tx: Tenant,
  workflowId: string,
  scheduledAt: Date,
  overlap: OverlapPolicy,
  open: OpenRun[],
): Promise<Outcome> {
  const newer = open.find((run) => run.scheduled_at > scheduledAt)
  if (newer) return { status: 'skipped', reason: 'superseded', open_run_id: newer.id }
  const waiting = firesOf(tx, workflowId).where({ status: 'waiting', parallel: false, source: 'schedule' })
  if (await waiting.clone().where('scheduled_at', '>', scheduledAt).first('scheduled_at'))
    return { status: 'skipped', reason: 'superseded', open_run_id: open[0]?.id }
  await waiting.update({ status: 'skipped', reason: 'superseded', decided_at: tx.trx.fn.now() })
  for (const { id } of open)
    if (overlap === 'cancel_other') await cancelRun(tx, id, SUPERSEDED)
    else await terminateRun(tx, id)
  const left = (await listOpen(tx, workflowId)).filter((run) => !run.backfill).length
  return { status: left === 0 ? 'started' : 'waiting' }
}

const SUPERSEDED = 'The run was cancelled by the next one of its schedule (overlap: cancel_other).'

interface OpenRun {
  id: string
  scheduled_at: Date
  backfill: boolean
}

/** The open runs that the schedule or a backfill started, without retries. */
async function listOpen(tx: Tenant, workflowId: string): Promise<OpenRun[]> {
  return tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, workflow_id: workflowId, ended_at: null })
    .whereNotNull('scheduled_at')
    .orderBy('scheduled_at')
    .limit(MAX_WAITING)
    .select<OpenRun[]>('id', 'scheduled_at', tx.trx.raw(`trigger -> 'backfill' is not null as backfill`))
}

async function countWaiting(tx: Tenant, workflowId: string): Promise<number> {
  const [row] = await firesOf(tx, workflowId)
    .where({ status: 'waiting', parallel: false })
    .count<{ count: number }[]>('* as count')
  return Number(row!.count)
}

/** SQL: whether a waiting time of the schedule `r` can start, or never will. */
const CAN_START = `(r.organization_id, r.workflow_id) in (
    with recursive ${skipScan('waiting', 'schedule_fires', 'workflow_id', "status = 'waiting'")}
    select organization_id, workflow_id from waiting)
  and (not exists (
      select from workflow_triggers t where t.organization_id = r.organization_id and t.workflow_id = r.workflow_id
        and t.type = 'schedule')
    or r.paused_at is null and (
      exists (select from schedule_fires f where f.organization_id = r.organization_id
        and f.workflow_id = r.workflow_id and f.status = 'waiting' and f.parallel)
      and (select count(*) from (select from runs q where q.organization_id = r.organization_id
        and q.lane = r.workflow_id and q.status = 'queued' limit ${AHEAD}) ahead) < ${AHEAD}
      or not exists (select from runs r2 where r2.organization_id = r.organization_id
        and r2.workflow_id = r.workflow_id and r2.scheduled_at is not null and r2.ended_at is null)))`

const UNLEASED = '(r.waiting_lease_until is null or r.waiting_lease_until < now())'

/**
 * Schedules with times that wait. Each organization has one schedule in work at a time, so that backfills of many
 * workflows load the workers no more than one. After its turn a schedule is the last of its organization.
 */
export const waitingSchedules = defineQueue<ScheduleKey>({
  table: 'workflow_schedules',
  key: ['organization_id', 'workflow_id'],
  waits: `${CAN_START} and ${UNLEASED}`,
  order: 'waiting_lease_until nulls first, workflow_id',
  lease: 'waiting_lease_until',
  turns: {
    slots: 1,
    occupied: `(select count(*) from workflow_schedules busy
      where busy.organization_id = o.organization_id and busy.waiting_lease_until >= now())`,
  },
})

/** Starts what can start of the waiting times of a workflow, and ends the lease. */
export async function startWaiting(tx: Tenant, workflowId: string): Promise<void> {
  const locked = await lockSchedule(tx, workflowId)
  await startNext(tx, workflowId, locked ?? { schedule: null, paused: false })
  await endWaitingLease(tx, workflowId)
}

/** A paused schedule keeps its waiting times; one without an active workflow skips them. */
async function startNext(tx: Tenant, workflowId: string, { schedule, paused }: Locked): Promise<void> {
  const waiting = () => firesOf(tx, workflowId).where({ status: 'waiting' })
  if (!schedule) {
    await waiting().update({ status: 'skipped', reason: 'inactive', decided_at: tx.trx.fn.now() })
    return
  }
  if (paused) return
  const first = (parallel: boolean, limit: number): Promise<Pick<Fire, 'scheduled_at' | 'source'>[]> =>
    waiting().where({ parallel }).orderBy('scheduled_at').limit(limit).select('scheduled_at', 'source')
  const free = AHEAD - (await countQueued(tx, workflowId))
  const page = free > 0 ? await first(true, Math.min(PAGE, free)) : []
  if (page.length > 0) await start(tx, workflowId, page)
  const [next] = await first(false, 1)
  if (next && (await listOpen(tx, workflowId)).length === 0) await start(tx, workflowId, [next])
}

/** The queued runs of the workflow, counted up to `AHEAD`. */
async function countQueued({ trx, organizationId }: Tenant, workflowId: string): Promise<number> {
  const queued = await trx('runs')
    .where({ organization_id: organizationId, lane: workflowId, status: 'queued' })
    .limit(AHEAD)
    .select('id')
  return queued.length
}

async function start(
  tx: Tenant,
  workflowId: string,
  fires: readonly Pick<Fire, 'scheduled_at' | 'source'>[],
): Promise<void> {
  const times = fires.map(({ scheduled_at, source }) => ({
    scheduled_at: scheduled_at.toISOString(),
    source,
  }))
  const runs = await createScheduledRuns(tx, workflowId, times)
  await tx.trx.raw(
    `update schedule_fires f set status = 'started', run_id = s.run_id, decided_at = now()
     from jsonb_to_recordset(:started) as s(scheduled_at timestamptz, run_id uuid)
     where f.organization_id = :organizationId and f.workflow_id = :workflowId and f.scheduled_at = s.scheduled_at`,
    {
      organizationId: tx.organizationId,
      workflowId,
      started: JSON.stringify([...runs].map(([scheduled_at, run_id]) => ({ scheduled_at, run_id }))),
    },
  )
}

/** The newest times that were decided or wait, by their time. */
export const listFires = (tx: Tenant, workflowId: string, limit: number): Promise<Fire[]> =>
  firesOf(tx, workflowId)
    .orderBy('scheduled_at', 'desc')
    .limit(limit)
    .select<Fire[]>(...SHOWN)

/** The number of times that wait for the end of a run or for a worker. */
export async function waitingFires(tx: Tenant, workflowId: string): Promise<number> {
  const [row] = await firesOf(tx, workflowId)
    .where({ status: 'waiting' })
    .count<{ count: number }[]>('* as count')
  return Number(row!.count)
}

const firesOf = (tx: Tenant, workflowId: string) =>
  tx.trx('schedule_fires').where({ organization_id: tx.organizationId, workflow_id: workflowId })
