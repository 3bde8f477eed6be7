import { advanceReplay, incomingReplays } from '../../db/incoming/replays.ts'
import type { tasks } from '../../db/model/incoming/map-body.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { mapIn } from '../../db/process/compute/map-in-thread.ts'
import { Pool } from '../../db/process/compute/pool.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import { pagedJobsQueue } from './paged-jobs.ts'

/** Replays of incoming webhooks. */
export function incomingReplaysQueue(db: Database, secretsKey: SecretsKey) {
  // Its threads start with the first large body, and end when they are idle.
  const pool = new Pool<typeof tasks>({
    module: new URL('../../db/model/incoming/map-body.ts', import.meta.url),
  })
  return pagedJobsQueue(db, {
    name: 'incoming replays',
    channel: 'agx_incoming_replays',
    jobs: incomingReplays,
    atOnce: 2,
    makePage: (replay, keepOn) =>
      advanceReplay(
        db,
        replay,
        {
          mapBody: (organizationId, body, mapping) => mapIn(pool, organizationId, body, mapping),
          secretsKey,
        },
        keepOn,
      ),
  })
}
