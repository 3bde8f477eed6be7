import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { cancelPage, type EventCancel, eventCancels } from '../../db/runs/event-cancels.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Runs of one transaction: short, so that other requests on these runs do not wait for long. */
const PAGE = 50

/** Events that are compared with open runs, and cancel them: `settings.cancel_on`. */
export const eventCancelsQueue = (db: Database) =>
  pagedJobsQueue<EventCancel>(db, {
    name: 'event cancels',
    channel: 'agx_event_cancels',
    jobs: eventCancels,
    atOnce: 8,
    makePage: (job) => db.tenant(job.organization_id, SYSTEM, (tx) => cancelPage(tx, job, PAGE)),
  })
