import { type ScheduleDescription, ScheduleNotFoundError } from '@temporalio/client'
import { listUnchecked, markChecked, readSchedule, type ScheduleKey } from '../../db/workflows/schedules.ts'
import type { FireInput } from '../../workflows/bundle/fire.ts'
import { scheduleIdOf } from '../../workflows/bundle/protocol.ts'
import { isPausedByUs } from '../queues/schedules.ts'
import { BATCH, type SweepDeps } from './deps.ts'
import { withTimeout } from './describe.ts'

/**
 * Compares the Schedules in Temporal with the workflows, those first that were not checked for longest. The relay
 * repairs a Schedule that was deleted or changed in Temporal, or that a restored database or Temporal has lost. A pause
 * that an operator made there stays, and the API shows it.
 */
export async function sweepSchedules(deps: SweepDeps, idle: string): Promise<void> {
  const { db, log } = deps
  const since = new Date()
  for (;;) {
    const rows = await listUnchecked(db.system, idle, since, BATCH)
    const checked = []
    for (const row of rows) {
      const { organization_id, workflow_id } = row
      try {
        const found = await describe(deps.client, workflow_id)
        const equal = await isUpToDate(deps, row, found)
        if (!equal)
          log.warn(
            { organization_id, workflow_id },
            'a Schedule in Temporal differs from its workflow; it is repaired',
          )
        checked.push({ ...row, equal, seen: true, operator_pause: operatorPause(found) })
      } catch (error) {
        log.warn({ err: error, organization_id, workflow_id }, 'the sweep could not check a schedule')
        checked.push({ ...row, equal: true, seen: false, operator_pause: null })
      }
      if (!(await deps.keepOn())) break
    }
    if (checked.length > 0) await markChecked(db.system, checked)
    if (rows.length < BATCH || !(await deps.keepOn())) return
  }
}

async function isUpToDate(
  { db }: SweepDeps,
  row: ScheduleKey & { revision: number },
  found: ScheduleDescription | undefined,
): Promise<boolean> {
  const desired = await readSchedule(db.system, row)
  // The relay has not applied the newest change yet.
  if (!desired || desired.revision !== row.revision) return true
  if (!found) return desired.schedule === null
  if (desired.state === 'deleted') return false
  const pausedAsDesired = desired.state === 'active' ? !isPausedByUs(found) : found.state.paused
  return revisionOf(found) === row.revision && pausedAsDesired
}

/** The note of a pause that we have not made; an operator's pause stays until an operator ends it. */
const operatorPause = (found: ScheduleDescription | undefined): string | null =>
  found?.state.paused && !isPausedByUs(found) ? (found.state.note ?? '').slice(0, 500) : null

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
