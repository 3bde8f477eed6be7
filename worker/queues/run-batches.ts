import type { Database } from '../../db/postgres/connect.ts'
import { advanceBatch, type ClaimedBatch, runBatches } from '../../db/runs/batches.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Runs of one transaction: short, so that other requests on these runs do not wait for long. */
const PAGE = 50

/** Retries, cancellations and migrations of many runs. */
export const runBatchesQueue = (db: Database) =>
  pagedJobsQueue<ClaimedBatch>(db, {
    name: 'run batches',
    channel: 'agx_run_batches',
    jobs: runBatches,
    atOnce: 2,
    makePage: (batch) =>
      db.tenant(batch.organization_id, batch.created_by, (tx) => advanceBatch(tx, batch, PAGE)),
  })
