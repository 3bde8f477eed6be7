import type { Database } from '../../db/postgres/connect.ts'
import { advanceBulkJob, bulkJobs, type ClaimedBulkJob } from '../../db/records/bulk/advance.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Records of one transaction: short, so that other requests on these records do not wait for long. */
const PAGE = 50

/** Changes of many records, and their undos. */
export const bulkJobsQueue = (db: Database) =>
  pagedJobsQueue<ClaimedBulkJob>(db, {
    name: 'bulk jobs',
    channel: 'agx_bulk_jobs',
    jobs: bulkJobs,
    atOnce: 2,
    makePage: (job) => db.tenant(job.organization_id, job.created_by, (tx) => advanceBulkJob(tx, job, PAGE)),
  })
