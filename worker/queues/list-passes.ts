import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { comparePage, listPasses } from '../../db/records/lists/passes.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Records of one transaction: short, because changes of the list wait for it. */
const PAGE = 500

/** Passes of lists over all records of their kind. */
export const listPassesQueue = (db: Database) =>
  pagedJobsQueue(db, {
    name: 'list passes',
    channel: 'agx_lists',
    jobs: listPasses,
    atOnce: 2,
    makePage: (job) => db.tenant(job.organization_id, SYSTEM, (tx) => comparePage(tx, job, PAGE)),
  })
