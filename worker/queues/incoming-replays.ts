import { advanceReplay, incomingReplays, type MapBody, type ReplayDeps } from '../../db/incoming/replays.ts'
import type { tasks } from '../../db/model/incoming/map-body.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { mapIn } from '../../db/process/compute/map-in-thread.ts'
import { Pool } from '../../db/process/compute/pool.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Maps bodies in threads, which start with the first large body, and end when they are idle. */
export function mapInThreads(): MapBody {
  const pool = new Pool<typeof tasks>({
    module: new URL('../../db/model/incoming/map-body.ts', import.meta.url),
  })
  return (organizationId, body, mapping) => mapIn(pool, organizationId, body, mapping)
}

/** Replays of incoming webhooks. */
export const incomingReplaysQueue = (db: Database, deps: ReplayDeps) =>
  pagedJobsQueue(db, {
    name: 'incoming replays',
    channel: 'agx_incoming_replays',
    jobs: incomingReplays,
    atOnce: 2,
    makePage: (replay, keepOn) => advanceReplay(db, replay, deps, keepOn),
  })
