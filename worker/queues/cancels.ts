import { WorkflowNotFoundError } from '@temporalio/client'
import { type ClaimedCancel, claimCancels, markCancelsSent } from '../../db/runs/queue.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'

/** Runs whose cancellation was requested but not sent to Temporal. Sending it twice is harmless. */
export const cancelsQueue: Queue<ClaimedCancel> = {
  name: 'cancels',
  channel: 'agx_cancels',
  claim: claimCancels,
  async start(client, row) {
    try {
      await client.workflow.getHandle(workflowIdOf(row)).cancel()
    } catch (error) {
      // The workflow has just ended. If the row does not show it, the sweep records it.
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  },
  started: markCancelsSent,
  async refused() {},
}
