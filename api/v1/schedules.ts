import { z } from 'zod'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import {
  BACKFILL_OVERLAPS,
  type Backfill,
  createBackfill,
  MAX_BACKFILL,
  MAX_WAITING_TIMES,
  previewBackfill,
} from '../../db/runs/backfills.ts'
import { FIRE_SOURCES, FIRE_STATUSES, type Fire, SKIP_REASONS } from '../../db/runs/fires.ts'
import { getSchedule, type ScheduleView, SHOWN_FIRES } from '../../db/runs/schedule-view.ts'
import { pauseSchedule, resumeSchedule } from '../../db/workflows/schedules.ts'
import { CATCHUP_WINDOW, OVERLAP_POLICIES } from '../../workflows/language/definition.ts'
import { localText, nextTimes } from '../../workflows/language/schedule-times.ts'
import { type Route, route } from '../http/route.ts'
import { confirmation } from './confirmation.ts'
import { triggerProblem } from './workflow-shapes.ts'

const time = z.iso.datetime()
const params = z.object({ workflow_id: z.uuid() })
const duration = z.string().nullable()
const NEXT_TIMES = 10

const fire = z
  .object({
    scheduled_at: time.meta({ description: 'The time by the schedule, without jitter.' }),
    source: z.enum(FIRE_SOURCES),
    status: z.enum(FIRE_STATUSES).meta({
      description:
        '`waiting`: for the end of an open run, for the end of a pause, or for a worker. Each time starts at most one run.',
    }),
    run_id: z.uuid().nullable(),
    reason: z.enum(SKIP_REASONS).nullable().meta({ description: 'The reason why it was skipped.' }),
    message: z.string().nullable().meta({ description: 'The reason in words.' }),
    open_run_id: z.uuid().nullable().meta({ description: 'The run that was open when it was skipped.' }),
    decided_at: time.nullable(),
  })
  .meta({ id: 'ScheduleFire' })

const schedule = z
  .object({
    object: z.literal('schedule'),
    workflow_id: z.uuid(),
    version: z.int().meta({ description: 'The version that has this schedule.' }),
    state: z.enum(['active', 'paused', 'inactive']).meta({
      description: '`inactive`: the workflow is not active, or its active version has another trigger.',
    }),
    paused: z
      .object({
        reason: z.string().nullable(),
        by: z.object({ type: z.string(), id: z.string().nullable() }),
        at: time,
      })
      .nullable(),
    paused_in_temporal: z.object({ note: z.string() }).nullable().meta({
      description:
        'An operator has paused it in Temporal: its times fire nothing, whatever `state` says, until an operator unpauses it there. Seen within a minute.',
    }),
    cron: z.string().nullable(),
    every: duration,
    offset: duration,
    timezone: z.string(),
    overlap: z.enum(OVERLAP_POLICIES).nullable().meta({
      description: 'null: runs may overlap, and of the times that an outage missed two are started at most.',
    }),
    catchup_window: z.string(),
    jitter: duration,
    next_times: z
      .array(
        z.object({ at: time, local: z.string().meta({ description: 'In the time zone of the schedule.' }) }),
      )
      .meta({
        description: `The next ${NEXT_TIMES} times, without jitter: those at which an active schedule fires.`,
      }),
    waiting: z.int().meta({ description: 'The number of times with the status `waiting`.' }),
    problem: triggerProblem,
    fires: z
      .array(fire)
      .meta({ description: `The newest times of the last 30 days, at most ${SHOWN_FIRES}.` }),
  })
  .meta({ id: 'Schedule' })

const instant = z.iso
  .datetime({ offset: true, error: 'must be a time with its offset, such as 2026-01-31T09:00:00Z' })
  .transform((text) => new Date(text))
const period = { from: instant, to: instant }

const counts = {
  from: time,
  to: time,
  overlap: z.enum(BACKFILL_OVERLAPS),
  total: z.int().meta({ description: 'The number of times of the schedule in the period.' }),
  already_fired: z
    .int()
    .meta({ description: 'Those that have a run or wait for one: they stay as they are.' }),
}

const preview = confirmation(
  'BackfillPreview',
  'backfill_preview',
  z.object({
    workflow_id: z.uuid(),
    ...counts,
    times: z.array(time).meta({ description: `The first ${NEXT_TIMES} times of the period.` }),
  }),
)

const backfill = z
  .object({
    object: z.literal('backfill'),
    workflow_id: z.uuid(),
    ...counts,
    queued: z.int().meta({ description: 'The number of times that will start a run.' }),
  })
  .meta({ id: 'Backfill' })

/** An operation that changes the schedule without changing the workflow. */
const change = <Body>(
  verb: 'pause' | 'resume',
  description: string,
  body: z.ZodType<Body> | undefined,
  move: (tx: Tenant, workflowId: string, body: Body) => Promise<void>,
) =>
  route({
    method: 'POST',
    path: `/workflows/{workflow_id}/schedule/${verb}`,
    scope: 'workflows:author',
    id: `${verb}Schedule`,
    tag: 'Workflows',
    summary: `${verb === 'pause' ? 'Pause' : 'Resume'} the schedule of a workflow`,
    description,
    params,
    ...(body && { body, example: { reason: 'The supplier migrates its server.' } }),
    response: { status: 200, schema: schedule },
    handler: async ({ params: { workflow_id }, body, tenant }) =>
      tenant(async (tx) => {
        await move(tx, workflow_id, body as Body)
        return present(workflow_id, await getSchedule(tx, workflow_id))
      }),
  })

export const scheduleRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/workflows/{workflow_id}/schedule',
    scope: 'workflows:read',
    id: 'getSchedule',
    tag: 'Workflows',
    summary: 'Retrieve the schedule of a workflow',
    description:
      'Returns its next times, and what became of the last ones. 404 if neither the active nor the newest version has a trigger of the type schedule.',
    params,
    response: { status: 200, schema: schedule },
    handler: async ({ params: { workflow_id }, tenant }) =>
      present(workflow_id, await tenant((tx) => getSchedule(tx, workflow_id))),
  }),
  change(
    'pause',
    'Its times start no run until it is resumed, also after a later activation; times that wait stay. The workflow stays active, and can be run by name or id. A schedule that is paused keeps its first pause.',
    z.strictObject({ reason: z.string().trim().min(1).max(500).optional() }).meta({ id: 'SchedulePause' }),
    (tx, id, { reason }) => pauseSchedule(tx, id, reason ?? null),
  ),
  change(
    'resume',
    'Times that passed during the pause are not made up for: see `backfillWorkflow`. A pause that an operator made in Temporal stays.',
    undefined,
    resumeSchedule,
  ),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/backfill',
    scope: 'workflows:run',
    id: 'backfillWorkflow',
    grows: true,
    tag: 'Workflows',
    summary: 'Run the past times of a schedule',
    description: `Starts a run of the active version for each time of its schedule from \`from\` to \`to\`, both inclusive, in the last ten
years: at most ${MAX_BACKFILL} times. A time that has started a run, or waits for one, is left out, so a repeated request starts nothing
twice as long as these runs are kept; one that was skipped starts now. Without \`confirm: true\` nothing happens: the response is a
preview with their number. \`overlap\`: \`buffer_all\` runs one after the other, the oldest first; \`allow_all\` all at once, as far as
slots are free. While the schedule is paused, they wait. At most ${MAX_WAITING_TIMES} times of an organization wait: 409 beyond.`,
    params,
    body: z
      .strictObject({
        ...period,
        overlap: z.enum(BACKFILL_OVERLAPS).default('buffer_all'),
        confirm: z.boolean().default(false),
      })
      .meta({ id: 'BackfillRequest' }),
    response: { status: 200, schema: z.union([preview.schema, backfill]).meta({ id: 'BackfillResult' }) },
    example: { from: '2026-01-01T00:00:00Z', to: '2026-01-31T23:59:59Z', confirm: true },
    handler: async ({ params: { workflow_id }, body: { confirm, ...request }, tenant, asPreview }) => {
      if (!confirm) asPreview()
      const found = await tenant((tx) =>
        (confirm ? createBackfill : previewBackfill)(tx, workflow_id, request),
      )
      const counts = countsOf(request, found)
      if (confirm) return { object: 'backfill', workflow_id, ...counts, queued: found.open }
      const times = found.times.slice(0, NEXT_TIMES).map((time) => time.toISOString())
      return preview.answer({ workflow_id, ...counts, times })
    },
  }),
]

const countsOf = (
  { from, to, overlap }: { from: Date; to: Date; overlap: (typeof BACKFILL_OVERLAPS)[number] },
  { times, open }: Backfill,
) => ({
  from: from.toISOString(),
  to: to.toISOString(),
  overlap,
  total: times.length,
  already_fired: times.length - open,
})

function present(
  workflow_id: string,
  { version, state, schedule, pause, operator_pause, waiting, problem, fires }: ScheduleView,
) {
  const { cron = null, every = null, offset = null, timezone, overlap = null, jitter = null } = schedule
  return {
    object: 'schedule',
    workflow_id,
    version,
    state,
    paused: pause,
    paused_in_temporal: operator_pause === null ? null : { note: operator_pause },
    cron,
    every,
    offset,
    timezone,
    overlap,
    catchup_window: schedule.catchup_window ?? CATCHUP_WINDOW,
    jitter,
    next_times: nextTimes(schedule, new Date(), NEXT_TIMES).map((at) => ({
      at: at.toISOString(),
      local: localText(at, timezone),
    })),
    waiting,
    problem,
    fires: fires.map(presentFire),
  }
}

const MESSAGES: Record<(typeof SKIP_REASONS)[number], string> = {
  overlap: 'An earlier run was open, and the overlap policy of the schedule lets no further one wait.',
  superseded: 'A later time had started or waited: the overlap policy keeps only the newest.',
  buffer_full: 'Too many earlier times waited for the end of an open run.',
  catchup_window: 'No worker could start it within the catchup_window.',
  paused: 'The schedule was paused.',
  inactive: 'The workflow was not active, or its active version had another trigger.',
}

const presentFire = ({ scheduled_at, source, status, run_id, reason, open_run_id, decided_at }: Fire) => ({
  scheduled_at,
  source,
  status,
  run_id,
  reason,
  message: reason && MESSAGES[reason],
  open_run_id,
  decided_at,
})
