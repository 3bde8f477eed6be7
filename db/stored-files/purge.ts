import { byAge, type Purge } from '../retention/purge.ts'

/** Hours after which the row of a content that nobody finished is deleted; receiving one takes at most an hour. */
const ABANDONED_HOURS = 12

export const filePurges: Purge[] = [
  byAge({
    name: 'abandoned files',
    tables: ['files'],
    keeps: `${ABANDONED_HOURS} hours`,
    index: 'files_abandoned',
    rows: 500,
    table: 'files',
    expired: `status = 'uploading' and created_at < now() - interval '${ABANDONED_HOURS} hours'`,
    order: 'created_at',
  }),
  byAge({
    name: 'files of purged runs',
    tables: ['files'],
    keeps: 'as long as their run, unless they are attached to a record',
    index: 'files_loose',
    rows: 500,
    table: 'files',
    expired: "status = 'stored' and run_id is null and record_id is null",
    order: 'created_at',
  }),
]
