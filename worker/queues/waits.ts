import { claimAnswered, markNotified, type WaitKey } from '../../db/runs/waits.ts'
import { REFRESH } from '../../workflows/protocol.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'
import { unlessGone } from './unless-gone.ts'

/**
 * Waits that were answered. The signal has no payload: the next segment of the run reads the answer. Sending it twice is
 * harmless.
 */
export const waitsQueue: Queue<WaitKey> = {
  name: 'waits',
  channel: 'agx_waits',
  claim: claimAnswered,
  async start(client, { run_id }) {
    // The first segment of a run that is resumed reads the answer.
    await unlessGone(client.workflow.getHandle(workflowIdOf({ id: run_id, kind: 'run' })).signal(REFRESH))
  },
  started: markNotified,
}
