import { Context } from '@temporalio/activity'
import { type Client, ScheduleNotFoundError } from '@temporalio/client'
import { SYSTEM } from '../db/model/actor.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Logger } from '../db/process/log.ts'
import { createScheduledRun } from '../db/runs/scheduled.ts'
import { hasSchedule } from '../db/workflows/schedules.ts'
import type { FireActivities } from '../workflows/bundle/fire.ts'
import { scheduleIdOf } from '../workflows/bundle/protocol.ts'
import { toFailure } from './faults.ts'

/** Queues the run of a schedule. A Schedule of a workflow that the database does not know is deleted. */
export function createFire({ db, log }: { db: Database; log: Logger }): FireActivities {
  return {
    async queueScheduledRun({ organization_id, workflow_id, scheduled_at }) {
      try {
        const { runId, known } = await db.tenant(organization_id, SYSTEM, async (tx) => {
          const runId = await createScheduledRun(tx, workflow_id, scheduled_at)
          return { runId, known: runId !== undefined || (await hasSchedule(tx, workflow_id)) }
        })
        if (!known) await deleteSchedule(Context.current().client, workflow_id)
        if (runId === undefined)
          log.warn({ organization_id, workflow_id, known }, 'a schedule without an active workflow fired')
        return { run_id: runId ?? null }
      } catch (error) {
        log.error({ err: error, organization_id, workflow_id }, 'the run of a schedule could not be queued')
        throw toFailure(error, { last: false })
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
