import {
  type Client,
  type ScheduleDescription,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client'
import {
  type DesiredSchedule,
  markRefused,
  markSynced,
  readSchedule,
  type ScheduleKey,
  staleSchedules,
} from '../../db/workflows/schedules.ts'
import type { fire } from '../../workflows/bundle/index.ts'
import { scheduleIdOf } from '../../workflows/bundle/protocol.ts'
import { summaryOf } from '../../workflows/bundle/summary.ts'
import { CATCHUP_WINDOW, type ScheduleSpec } from '../../workflows/language/definition.ts'
import { parseDuration } from '../../workflows/language/duration.ts'
import type { Select } from '../namespace-attributes.ts'
import { type Queue, Refused } from '../relay.ts'
import { searchAttributes } from '../search-attributes.ts'
import type { QueueDeps } from './runs.ts'

/** The notes of our pauses. A pause with another note is an operator's, and stays. */
const NOTES = { paused: 'The schedule is paused through the API.', inactive: 'The workflow is inactive.' }

/** Whether the service itself has paused the Schedule. */
export const isPausedByUs = ({ state }: Pick<ScheduleDescription, 'state'>): boolean =>
  state.paused && Object.values(NOTES).some((note) => note === state.note)

/**
 * What Temporal does at a time while earlier `fire` workflows are open, which is after an outage only: the policy of the
 * workflow is about runs, whose rows decide it (`db/runs/fires.ts`). `allow_all` and `buffer_all` want every missed time.
 * The other policies get two at most, because they would skip the rest.
 */
const overlapOf = ({ overlap }: ScheduleSpec) =>
  overlap === 'allow_all' || overlap === 'buffer_all'
    ? ScheduleOverlapPolicy.ALLOW_ALL
    : ScheduleOverlapPolicy.BUFFER_ONE

/** Stands for the schedule of an inactive workflow, whose Schedule in Temporal keeps its times. */
const NO_SCHEDULE: ScheduleSpec = { cron: '', timezone: 'UTC' }

/** Workflows whose Schedule in Temporal is not up to date. The start makes it equal to the workflow. */
export function schedulesQueue({
  db,
  taskQueue,
  attributes,
}: Pick<QueueDeps, 'db' | 'taskQueue' | 'attributes'>): Queue<ScheduleKey> {
  const told = new Map<ScheduleKey, DesiredSchedule>()

  const tell = (client: Client, desired: DesiredSchedule): Promise<void> =>
    attributes
      .apply(client, (select) => tellTemporal(client, desired, { taskQueue, select }))
      .catch((error: unknown) => {
        // The SDK makes a TypeError of an invalid cron expression or time zone.
        throw error instanceof TypeError ? new Refused(error.message) : error
      })

  return {
    name: 'schedules',
    channel: 'agx_schedules',
    claim: staleSchedules.claim,
    async start(client, row) {
      const desired = await readSchedule(db.system, row)
      if (!desired) return
      await tell(client, desired)
      told.set(row, desired)
    },
    async started(system, rows) {
      for (const row of rows) {
        const desired = told.get(row)
        told.delete(row)
        if (desired) await markSynced(system, desired)
      }
    },
    refused: (db, row, reason) => markRefused(db.system, row, reason),
  }
}

interface Options {
  taskQueue: string
  select: Select
}

/** Creates, updates, pauses or deletes the Schedule. Telling it again changes nothing. */
async function tellTemporal(client: Client, desired: DesiredSchedule, options: Options): Promise<void> {
  const handle = client.schedule.getHandle(scheduleIdOf(desired.workflow_id))
  try {
    if (desired.state === 'deleted') await handle.delete()
    else await handle.update<typeof fire>((found) => updateOf(found, desired, options))
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error
    // A workflow that was deactivated before Temporal was told has none to pause.
    if (desired.schedule) await create(client, desired, options)
  }
}

function create(client: Client, desired: DesiredSchedule, options: Options) {
  const { organization_id, workflow_id } = desired
  return client.schedule.create<typeof fire>({
    scheduleId: scheduleIdOf(workflow_id),
    ...contentOf(desired, options),
    ...(desired.state === 'paused' && { state: { paused: true, note: NOTES.paused } }),
    memo: { organization_id, workflow_id },
  })
}

function contentOf(desired: DesiredSchedule, { taskQueue, select }: Options) {
  const { organization_id, workflow_id, revision } = desired
  const schedule = desired.schedule ?? NO_SCHEDULE
  const typedSearchAttributes = select([
    { key: searchAttributes.organization, value: organization_id },
    { key: searchAttributes.workflow, value: workflow_id },
    { key: searchAttributes.workflowName, value: desired.workflow_name },
    { key: searchAttributes.trigger, value: 'schedule' },
  ])
  return {
    spec: specOf(schedule),
    policies: {
      overlap: overlapOf(schedule),
      catchupWindow: parseDuration(schedule.catchup_window ?? CATCHUP_WINDOW)!,
    },
    action: {
      type: 'startWorkflow' as const,
      workflowType: 'fire',
      workflowId: `fire:${workflow_id}`,
      taskQueue,
      args: [{ organization_id, workflow_id, revision }] as Parameters<typeof fire>,
      staticSummary: summaryOf(`Schedule of ${desired.workflow_name}`),
      memo: { organization_id, workflow_id, workflow_version: desired.version },
      typedSearchAttributes,
    },
    typedSearchAttributes,
  }
}

const specOf = ({ cron, every, offset, timezone, jitter }: ScheduleSpec) => ({
  ...(every === undefined
    ? { cronExpressions: [cron ?? ''], timezone }
    : { intervals: [{ every: parseDuration(every)!, offset: parseDuration(offset ?? '0s')! }] }),
  ...(jitter !== undefined && { jitter: parseDuration(jitter)! }),
})

function updateOf(found: ScheduleDescription, desired: DesiredSchedule, options: Options) {
  const { spec, state } = found
  const pausedByOperator = state.paused && !isPausedByUs(found)
  const note = desired.state === 'active' ? undefined : NOTES[desired.state as 'paused' | 'inactive']
  return {
    ...contentOf(desired, options),
    // The times of an inactive workflow stay as they were.
    ...(desired.schedule ? {} : { spec }),
    state: pausedByOperator ? state : note === undefined ? { paused: false } : { paused: true, note },
  }
}
