import type { Database } from '../../db/postgres/connect.ts'
import { advanceBatch, type ClaimedBatch, claimBatches, releaseBatches } from '../../db/runs/batches.ts'
import type { Queue } from '../relay.ts'

/** Runs of one transaction: short, so that other requests on these runs do not wait for long. */
const PAGE = 50
/** Batches that one worker makes at the same time. */
const AT_ONCE = 2
/** The time of one claim; then other batches have their turn, and a worker can stop. */
const TURN_MS = 2_000

/** Retries and cancellations of many runs. It starts no workflow: a worker makes a batch in pages. */
export function runBatchesQueue(db: Database): Queue<ClaimedBatch> {
  return {
    name: 'run batches',
    channel: 'agx_run_batches',
    claim: (system, limit) => claimBatches(system, Math.min(limit, AT_ONCE)),
    async start(_client, batch) {
      const until = Date.now() + TURN_MS
      let more = true
      while (more && Date.now() < until)
        more = await db.tenant(batch.organization_id, batch.created_by, (tx) => advanceBatch(tx, batch, PAGE))
    },
    started: releaseBatches,
    failed: releaseBatches,
  }
}
