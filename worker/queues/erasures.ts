import { advanceErasure, type ClaimedErasure, erasureJobs } from '../../db/erasure/advance.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Searches of all that names an erased person. */
export const erasuresQueue = (db: Database) =>
  pagedJobsQueue<ClaimedErasure>(db, {
    name: 'erasures',
    channel: 'agx_erasures',
    jobs: erasureJobs,
    atOnce: 1,
    makePage: (job) => db.tenant(job.organization_id, job.created_by, (tx) => advanceErasure(tx, job)),
  })
