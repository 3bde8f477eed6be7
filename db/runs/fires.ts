import { CATCHUP_WINDOW, type OverlapPolicy, type ScheduleSpec } from '../../workflows/language/definition.ts'
import { parseDuration } from '../../workflows/language/duration.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { skipScan } from '../queue/lanes.ts'
import { claimAlone } from '../queue/queue-lock.ts'
import { isScheduleLocked, lockSchedule } from '../workflows/schedules.ts'
import { cancelRun, terminateRun } from './moves/ends.ts'
import { createScheduledRun } from './scheduled.ts'

/**
 * What becomes of each time of a schedule: a row of `schedule_fires`. Temporal starts a workflow `fire` at each time,
 * which ends long before the run does. So the overlap policy is decided here, by the rows of the runs, under a lock on the
 * schedule: two times of a workflow are decided one after the other. A time that must wait is started by the relay.
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
/** Runs that one transaction starts. */
const PAGE = 25

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
  const started = outcome.status === 'started' && (await createScheduledRun(tx, workflowId, scheduledAt))
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

/** The workflows of which a waiting time can start, or never will. */
export const claimWaiting = (
  system: System,
  limit: number,
): Promise<{ organization_id: string; workflow_id: string }[]> =>
  claimAlone(system, 'schedule_fires', CLAIM, { limit })

const CLAIM = `
  with recursive ${skipScan('waiting', 'schedule_fires', 'workflow_id', "status = 'waiting'")}
  select w.organization_id, w.workflow_id from waiting w
    left join workflow_schedules s on s.organization_id = w.organization_id and s.workflow_id = w.workflow_id
  where not exists (
      select from workflow_triggers t where t.organization_id = w.organization_id and t.workflow_id = w.workflow_id
        and t.type = 'schedule')
    or s.paused_at is null and (
      exists (select from schedule_fires f where f.organization_id = w.organization_id
        and f.workflow_id = w.workflow_id and f.status = 'waiting' and f.parallel)
      or not exists (select from runs r where r.organization_id = w.organization_id and r.workflow_id = w.workflow_id
        and r.scheduled_at is not null and r.ended_at is null))
  -- no organization is always the first
  order by random() limit :limit`

/**
 * Starts what can start of the waiting times of a workflow. The queue claims without a lease, so that it may claim a
 * workflow that is in work: then this does nothing, instead of holding a connection while it waits for the lock.
 */
export async function startWaiting(tx: Tenant, workflowId: string): Promise<void> {
  if (await isScheduleLocked(tx, workflowId)) return
  const locked = await lockSchedule(tx, workflowId)
  await startNext(tx, workflowId, locked ?? { schedule: null, paused: false })
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
  for (const fire of await first(true, PAGE)) await start(tx, workflowId, fire)
  const [next] = await first(false, 1)
  if (next && (await listOpen(tx, workflowId)).length === 0) await start(tx, workflowId, next)
}

async function start(
  tx: Tenant,
  workflowId: string,
  { scheduled_at, source }: Pick<Fire, 'scheduled_at' | 'source'>,
): Promise<void> {
  const run_id = await createScheduledRun(tx, workflowId, scheduled_at.toISOString(), source)
  await firesOf(tx, workflowId)
    .where({ scheduled_at })
    .update({ status: 'started', run_id, decided_at: tx.trx.fn.now() })
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
