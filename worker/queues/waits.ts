import { WorkflowNotFoundError } from '@temporalio/client'
import { claimAnswered, markNotified, type WaitKey } from '../../db/runs/waits.ts'
import { REFRESH } from '../../workflows/protocol.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'

/**
 * Waits that were answered. The signal has no payload: the next segment of the run reads the answer. Sending it twice is
 * harmless.
 */
export const waitsQueue: Queue<WaitKey> = {
  name: 'waits',
  channel: 'agx_waits',
  claim: claimAnswered,
  async start(client, { run_id }) {
    try {
      await client.workflow.getHandle(workflowIdOf({ id: run_id, kind: 'run' })).signal(REFRESH)
    } catch (error) {
      // The run has ended, or is resumed: its first segment reads the answer.
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  },
  started: markNotified,
  async refused() {},
}
