import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { comparePage, listPasses } from '../../db/records/lists/passes.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Records of one transaction: short, because changes of the list wait for it. */
const PAGE = 500

/** Passes of lists over all records of their kind. */
export const listPassesQueue = ({ db, log }: { db: Database; log: Logger }) =>
  pagedJobsQueue(db, {
    name: 'list passes',
    channel: 'agx_lists',
    jobs: listPasses,
    atOnce: 2,
    makePage: ({ organization_id, id }) =>
      db.tenant(organization_id, SYSTEM, (tx) =>
        comparePage(tx, { organization_id, id }, PAGE, (err) =>
          log.warn({ err, organization_id, list_id: id }, 'records could not be compared with a list'),
        ),
      ),
  })
