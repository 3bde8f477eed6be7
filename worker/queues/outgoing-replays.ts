import { SYSTEM } from '../../db/model/actor.ts'
import { advanceReplay, outgoingReplays } from '../../db/outgoing/replays.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Replays of outgoing webhooks. A turn has one page: the claim decides whether the endpoint can take another. */
export const outgoingReplaysQueue = (db: Database) =>
  pagedJobsQueue(db, {
    name: 'outgoing replays',
    channel: 'agx_outgoing_replays',
    jobs: outgoingReplays,
    atOnce: 4,
    async makePage({ organization_id, id }) {
      await db.tenant(organization_id, SYSTEM, (tx) => advanceReplay(tx, id))
      return false
    },
  })
