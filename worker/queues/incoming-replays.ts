import { mapIn } from '../../db/incoming/map-in-thread.ts'
import { advanceReplay, claimReplays, releaseReplays } from '../../db/incoming/replays.ts'
import type { tasks } from '../../db/model/incoming/map-body.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { Pool } from '../../db/process/compute/pool.ts'
import type { ClaimedReplay } from '../../db/queue/replays.ts'
import type { Queue } from '../relay.ts'

/** Replays that one worker advances at the same time. */
const AT_ONCE = 2
/** The duration of a turn; well below the lease. */
const TURN_MS = 3_000

/** Replays of incoming webhooks. It starts no workflow: a claim is a turn of some seconds, and the next claim the next. */
export function incomingReplaysQueue(db: Database): Queue<ClaimedReplay> {
  // Its threads start with the first large body, and end when they are idle.
  const pool = new Pool<typeof tasks>({
    module: new URL('../../db/model/incoming/map-body.ts', import.meta.url),
  })
  return {
    name: 'incoming replays',
    channel: 'agx_incoming_replays',
    claim: (system, limit) => claimReplays(system, Math.min(limit, AT_ONCE)),
    async start(_client, replay) {
      await advanceReplay(
        db,
        replay,
        (organizationId, body, mapping) => mapIn(pool, organizationId, body, mapping),
        Date.now() + TURN_MS,
      )
      await releaseReplays(db.system, [replay])
    },
    async started() {},
    async refused() {},
    failed: releaseReplays,
  }
}
