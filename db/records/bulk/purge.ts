import { byAge } from '../../retention/purge.ts'
import { JOB_DAYS } from './jobs.ts'

export const bulkPurges = [
  byAge({
    name: 'bulk jobs',
    tables: ['bulk_jobs', 'bulk_job_items'],
    keeps: `${JOB_DAYS} days after their end`,
    index: 'bulk_jobs_age',
    rows: 1,
    table: 'bulk_jobs',
    expired: `ended_at < now() - interval '${JOB_DAYS} days'`,
    order: 'ended_at',
  }),
]
