import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { startWaiting, waitingSchedules } from '../../db/runs/fires.ts'
import type { ScheduleKey } from '../../db/workflows/schedules.ts'
import type { Queue } from '../relay.ts'

/** Every end of a run wakes it, for the few schedules whose runs wait for each other. */
const LEAST_PAUSE_MS = 200
/** Each queues a page of runs: more at once would take the connections of all other work. */
const AT_ONCE = 2

/** Times of schedules that wait for the end of a run, or of a backfill. It starts no workflow: it queues their runs. */
export const waitingFiresQueue = (db: Database): Queue<ScheduleKey> => ({
  name: 'waiting fires',
  channel: 'agx_runs',
  leastPause: LEAST_PAUSE_MS,
  atOnce: AT_ONCE,
  claim: waitingSchedules.claim,
  start: (_client, { organization_id, workflow_id }) =>
    db.tenant(organization_id, SYSTEM, (tx) => startWaiting(tx, workflow_id)),
})
