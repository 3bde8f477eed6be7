import { type ClaimedCancel, claimCancels, markCancelsSent } from '../../db/runs/queue.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'
import { unlessGone } from './unless-gone.ts'

/** Runs whose cancellation was requested but not sent to Temporal. Sending it twice is harmless. */
export const cancelsQueue: Queue<ClaimedCancel> = {
  name: 'cancels',
  channel: 'agx_cancels',
  claim: claimCancels,
  async start(client, row) {
    // If the workflow has just ended and the row does not show it, the sweep records it.
    await unlessGone(client.workflow.getHandle(workflowIdOf(row)).cancel())
  },
  started: markCancelsSent,
}
