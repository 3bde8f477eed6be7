import type { Database } from '../../db/postgres/connect.ts'
import { type ClaimedCancel, cancels } from '../../db/runs/queue.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'
import { tellRun } from './unless-gone.ts'

/** Runs whose cancellation was requested but not sent to Temporal. Sending it twice is harmless. */
export const cancelsQueue = (db: Database): Queue<ClaimedCancel> => ({
  name: 'cancels',
  channel: 'agx_cancels',
  claim: cancels.claim,
  start: (client, row) => tellRun(db.system, row, client.workflow.getHandle(workflowIdOf(row)).cancel()),
  started: cancels.release,
})
