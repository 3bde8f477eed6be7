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
import type { Select } from '../namespace-attributes.ts'
import { type Queue, Refused } from '../relay.ts'
import { searchAttributes } from '../search-attributes.ts'
import type { QueueDeps } from './runs.ts'

/** The note of a Schedule whose workflow is inactive. A pause with another note is an operator's, and stays. */
export const INACTIVE = 'The workflow is inactive.'

/**
 * How long after its time a missed run is still started, after an outage of Temporal. Several missed times of a schedule
 * start two runs at most (`BUFFER_ONE`), not one for each.
 */
const CATCH_UP = '1 day'

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
    else
      await handle.update<typeof fire>((found) =>
        desired.state === 'paused' ? pausedOf(found, desired, options) : updateOf(found, desired, options),
      )
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error
    // A workflow that was deactivated before Temporal was told has none to pause.
    if (desired.state === 'active') await create(client, desired, options)
  }
}

function create(client: Client, desired: DesiredSchedule, options: Options) {
  const { organization_id, workflow_id } = desired
  return client.schedule.create<typeof fire>({
    scheduleId: scheduleIdOf(workflow_id),
    ...contentOf(desired, options),
    memo: { organization_id, workflow_id },
  })
}

function contentOf(desired: DesiredSchedule, { taskQueue, select }: Options) {
  const { organization_id, workflow_id, revision } = desired
  const typedSearchAttributes = select([
    { key: searchAttributes.organization, value: organization_id },
    { key: searchAttributes.workflow, value: workflow_id },
    { key: searchAttributes.workflowName, value: desired.workflow_name },
    { key: searchAttributes.trigger, value: 'schedule' },
  ])
  return {
    spec: { cronExpressions: [desired.cron ?? ''], timezone: desired.timezone ?? 'UTC' },
    policies: { overlap: ScheduleOverlapPolicy.BUFFER_ONE, catchupWindow: CATCH_UP } as const,
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

function updateOf({ state }: ScheduleDescription, desired: DesiredSchedule, options: Options) {
  const pausedByOperator = state.paused && state.note !== INACTIVE
  return { ...contentOf(desired, options), state: pausedByOperator ? state : { paused: false } }
}

/** The times of an inactive workflow stay as they were. */
function pausedOf({ spec, state }: ScheduleDescription, desired: DesiredSchedule, options: Options) {
  const paused = state.paused ? state : { paused: true, note: INACTIVE }
  return { ...contentOf(desired, options), spec, state: paused }
}
