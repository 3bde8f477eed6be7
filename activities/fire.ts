import { Context } from '@temporalio/activity'
import { type Client, ScheduleNotFoundError } from '@temporalio/client'
import { SYSTEM } from '../db/model/actor.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Logger } from '../db/process/log.ts'
import { isBehind } from '../db/queue/witness.ts'
import { fireSchedule } from '../db/runs/fires.ts'
import type { FireActivities } from '../workflows/bundle/fire.ts'
import { scheduleIdOf } from '../workflows/bundle/protocol.ts'
import { isTransient, toFailure, UnknownRun } from './faults.ts'

/** Attempts after which an error that no retry can help ends a fire, without a run. */
const MAX_FAILURES = 5

/** Decides what becomes of a time of a schedule. A Schedule of a workflow that the database does not know is deleted. */
export function createFire({ db, log }: { db: Database; log: Logger }): FireActivities {
  return {
    async queueScheduledRun({ organization_id, workflow_id, scheduled_at, started_at = scheduled_at }) {
      try {
        const fire = await db.tenant(organization_id, SYSTEM, (tx) =>
          fireSchedule(tx, workflow_id, { scheduledAt: scheduled_at, startedAt: started_at }),
        )
        if (!fire) {
          if (await isBehind(db.system, Context.current().info.taskQueue)) throw new UnknownRun()
          log.warn({ organization_id, workflow_id }, 'a Schedule of an unknown workflow fired; it is deleted')
          await deleteSchedule(Context.current().client, workflow_id)
          return { run_id: null }
        }
        const { run_id, status, reason } = fire
        return { run_id, status, ...(reason === null ? {} : { reason }) }
      } catch (error) {
        log.error({ err: error, organization_id, workflow_id }, 'the run of a schedule could not be queued')
        // A fire that never ended would hold back all later ones of its Schedule.
        throw toFailure(error, {
          last: !isTransient(error) && Context.current().info.attempt >= MAX_FAILURES,
        })
      }
    },
  }
}

/** Deletes the Schedule of an unknown workflow: the database was restored, or the organization was deleted. */
async function deleteSchedule(client: Client, workflowId: string): Promise<void> {
  try {
    await client.schedule.getHandle(scheduleIdOf(workflowId)).delete()
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error
  }
}
