import type { Database } from '../../db/postgres/connect.ts'
import { checkAgain } from '../../db/runs/queue.ts'
import { answeredWaits, type WaitKey } from '../../db/runs/waits.ts'
import { REFRESH } from '../../workflows/bundle/protocol.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'
import { tellRun } from './unless-gone.ts'

/**
 * Waits that were answered. The signal has no payload: the next segment of the run reads the answer. Sending it twice is
 * harmless.
 */
export const waitsQueue = (db: Database): Queue<WaitKey> => ({
  name: 'waits',
  channel: 'agx_waits',
  claim: answeredWaits.claim,
  start(client, { organization_id, run_id: id }) {
    // The first segment of a run that is resumed reads the answer.
    const workflow = client.workflow.getHandle(workflowIdOf({ id, kind: 'run' }))
    return tellRun(db.system, { organization_id, id }, workflow.signal(REFRESH))
  },
  async started(system, waits) {
    await answeredWaits.release(system, waits)
    await checkAgain(
      system,
      waits.map(({ organization_id, run_id: id }) => ({ organization_id, id })),
    )
  },
})
