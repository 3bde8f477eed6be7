import { advanceReplay, incomingReplays, type ReplayDeps } from '../../db/incoming/replays.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Replays of incoming webhooks. */
export const incomingReplaysQueue = (db: Database, deps: ReplayDeps) =>
  pagedJobsQueue(db, {
    name: 'incoming replays',
    channel: 'agx_incoming_replays',
    jobs: incomingReplays,
    atOnce: 2,
    makePage: (replay, keepOn) => advanceReplay(db, replay, deps, keepOn),
  })
