import type { ScheduleSpec } from '../../workflows/language/definition.ts'
import { countTimes, listTimes } from '../../workflows/language/schedule-times.ts'
import { recordChange } from '../access/audit-log.ts'
import { conflict, invalid } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockSchedule } from '../workflows/schedules.ts'
import { getWorkflow } from '../workflows/workflows.ts'

/** Backfills: the runs of past times of a schedule, at each time once. */

/** Times of one backfill at most. */
export const MAX_BACKFILL = 10_000
/** A backfill is refused that would let more times of the organization wait. */
export const MAX_WAITING_TIMES = 20_000
/** How far back it may reach, in years: more cannot be counted in a request. */
const MAX_YEARS = 10

/** `allow_all`: all at once, as far as slots are free. `buffer_all`: one after the other, the oldest first. */
export const BACKFILL_OVERLAPS = ['buffer_all', 'allow_all'] as const

export interface BackfillRequest {
  /** Both inclusive. */
  from: Date
  to: Date
  overlap: (typeof BACKFILL_OVERLAPS)[number]
}

export interface Backfill {
  /** The times of the schedule in the period. */
  times: Date[]
  /** How many of them have not fired and do not wait. */
  open: number
}

/**
 * Throws `not_found`, `conflict` without an active schedule or above MAX_BACKFILL or MAX_WAITING_TIMES,
 * `validation_error`.
 */
export async function previewBackfill(
  tx: Tenant,
  workflowId: string,
  request: BackfillRequest,
): Promise<Backfill> {
  const { times } = await timesOf(tx, workflowId, request)
  const { rows } = await tx.trx.raw<{ rows: { count: number }[] }>(
    `select cast(count(*) as integer) as count from ${TIMES}`,
    bindings(tx, workflowId, times),
  )
  const open = rows[0]!.count
  refuseAbove(open + (await countWaitingTimes(tx)), open)
  return { times, open }
}

/** Queues the times of the period that have not fired; workers start them. Throws as `previewBackfill`. */
export async function createBackfill(
  tx: Tenant,
  workflowId: string,
  request: BackfillRequest,
): Promise<Backfill> {
  const { times, name } = await timesOf(tx, workflowId, request)
  // Two backfills at the same time are counted one after the other.
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `agx backfill ${tx.organizationId}`,
  ])
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `insert into schedule_fires as f (organization_id, workflow_id, scheduled_at, source, status, parallel, requested_by)
     select :organizationId, :workflowId, t.at, 'backfill', 'waiting', :parallel, cast(:actor as jsonb) from ${TIMES}
     on conflict (organization_id, workflow_id, scheduled_at) do update set
       source = 'backfill', status = 'waiting', parallel = excluded.parallel, requested_by = excluded.requested_by,
       reason = null, open_run_id = null, created_at = now(), decided_at = null
     where f.status = 'skipped'`,
    {
      ...bindings(tx, workflowId, times),
      parallel: request.overlap === 'allow_all',
      actor: JSON.stringify(tx.actor),
    },
  )
  refuseAbove(await countWaitingTimes(tx), rowCount)
  tx.wake('agx_runs')
  const [from, to] = [request.from.toISOString(), request.to.toISOString()]
  await recordChange(tx, 'workflow.backfilled', {
    id: workflowId,
    name,
    details: { from, to, queued: rowCount },
  })
  return { times, open: rowCount }
}

/** The number of times of the organization that wait. */
async function countWaitingTimes({ trx, organizationId }: Tenant): Promise<number> {
  const [row] = await trx('schedule_fires')
    .where({ organization_id: organizationId, status: 'waiting' })
    .count<{ count: number }[]>('* as count')
  return Number(row!.count)
}

/** `waiting`: with the `own` times of the backfill. One that adds none is never refused. */
function refuseAbove(waiting: number, own: number): void {
  if (own > 0 && waiting > MAX_WAITING_TIMES)
    throw conflict(
      `${waiting - own} times of schedules wait already; with this backfill they would be ${waiting}, and an organization has at most ${MAX_WAITING_TIMES} times that wait`,
      {
        param: 'from',
        hint: 'choose a shorter period, or repeat the request when earlier ones have started',
      },
    )
}

/** SQL: the times \`t.at\` among \`:times\` that neither fired nor wait; a run may be kept longer than its fire. */
const TIMES = `unnest(cast(:times as timestamptz[])) as t(at)
  where not exists (select from schedule_fires f where f.organization_id = :organizationId
      and f.workflow_id = :workflowId and f.scheduled_at = t.at and f.status <> 'skipped')
    and not exists (select from runs r where r.organization_id = :organizationId and r.workflow_id = :workflowId
      and r.trigger_key = to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`

const bindings = ({ organizationId }: Tenant, workflowId: string, times: Date[]) => ({
  organizationId,
  workflowId,
  times: times.map((time) => time.toISOString()),
})

async function timesOf(
  tx: Tenant,
  workflowId: string,
  { from, to }: BackfillRequest,
): Promise<{ times: Date[]; name: string }> {
  const { schedule, name } = await activeSchedule(tx, workflowId)
  const refuse = (name: string, msg: string, hint: string) =>
    invalid([{ loc: ['body', name], msg, type: 'value_error', hint }])
  const now = new Date()
  if (to > now) throw refuse('to', 'must not be in the future', 'the schedule itself fires the times to come')
  if (from > to) throw refuse('from', 'must not be after to', 'exchange from and to')
  const earliest = new Date(now)
  earliest.setUTCFullYear(now.getUTCFullYear() - MAX_YEARS)
  earliest.setUTCDate(earliest.getUTCDate() - 1)
  if (from < earliest)
    throw refuse('from', `must be within the last ${MAX_YEARS} years`, 'choose a later time')
  const count = countTimes(schedule, from, to)
  if (count > MAX_BACKFILL)
    throw conflict(`the period has ${count} times of the schedule; a backfill has at most ${MAX_BACKFILL}`, {
      param: 'from',
      hint: 'choose a shorter period, and repeat it for the next one',
    })
  return { times: listTimes(schedule, from, to), name }
}

async function activeSchedule(
  tx: Tenant,
  workflowId: string,
): Promise<{ schedule: ScheduleSpec; name: string }> {
  const { name } = await getWorkflow(tx, workflowId)
  const locked = await lockSchedule(tx, workflowId)
  if (locked?.schedule) return { schedule: locked.schedule, name }
  throw conflict('the workflow has no active schedule', {
    param: 'workflow_id',
    hint: 'give it a trigger of the type schedule, and activate it',
  })
}
