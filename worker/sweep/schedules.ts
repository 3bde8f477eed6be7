import { type ScheduleDescription, ScheduleNotFoundError } from '@temporalio/client'
import { listUnchecked, markChecked, readSchedule, type ScheduleKey } from '../../db/workflows/schedules.ts'
import type { FireInput } from '../../workflows/bundle/fire.ts'
import { scheduleIdOf } from '../../workflows/bundle/protocol.ts'
import { isPausedByUs } from '../queues/schedules.ts'
import { BATCH, type SweepDeps } from './deps.ts'
import { withTimeout } from './describe.ts'

/**
 * Compares the Schedules in Temporal with the workflows, those first that were not checked for longest. The relay
 * repairs a Schedule that was deleted or paused in Temporal, or that a restored database or Temporal has lost.
 */
export async function sweepSchedules(deps: SweepDeps, idle: string): Promise<void> {
  const { db, log } = deps
  const since = new Date()
  for (;;) {
    const rows = await listUnchecked(db.system, idle, since, BATCH)
    const checked = []
    for (const row of rows) {
      try {
        const equal = await isUpToDate(deps, row)
        if (!equal) log.warn(row, 'a Schedule in Temporal differs from its workflow; it is repaired')
        checked.push({ ...row, equal })
      } catch (error) {
        log.warn({ err: error, ...row }, 'the sweep could not check a schedule')
        checked.push({ ...row, equal: true })
      }
      if (!(await deps.keepOn())) break
    }
    if (checked.length > 0) await markChecked(db.system, checked)
    if (rows.length < BATCH || !(await deps.keepOn())) return
  }
}

async function isUpToDate(
  { db, client }: SweepDeps,
  row: ScheduleKey & { revision: number },
): Promise<boolean> {
  const desired = await readSchedule(db.system, row)
  // The relay has not applied the newest change yet.
  if (!desired || desired.revision !== row.revision) return true
  const found = await describe(client, row.workflow_id)
  if (!found) return desired.schedule === null
  if (desired.state === 'deleted') return false
  const pausedAsDesired = desired.state === 'active' ? !isPausedByUs(found) : found.state.paused
  return revisionOf(found) === row.revision && pausedAsDesired
}

async function describe(
  client: SweepDeps['client'],
  workflowId: string,
): Promise<ScheduleDescription | undefined> {
  try {
    const handle = client.schedule.getHandle(scheduleIdOf(workflowId))
    return await withTimeout(client, () => handle.describe())
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined
    throw error
  }
}

const revisionOf = ({ action }: ScheduleDescription) =>
  (action.args?.[0] as Partial<FireInput> | undefined)?.revision
