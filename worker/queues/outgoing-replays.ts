import { SYSTEM } from '../../db/model/actor.ts'
import { advanceReplay, claimReplays, releaseReplays } from '../../db/outgoing/replays.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { ClaimedReplay } from '../../db/queue/replays.ts'
import type { Queue } from '../relay.ts'

/** Replays that one worker advances at the same time. */
const AT_ONCE = 4

/** Replays of outgoing webhooks. It starts no workflow: a claim makes one page, and the next claim the next page. */
export function outgoingReplaysQueue(db: Database): Queue<ClaimedReplay> {
  return {
    name: 'outgoing replays',
    channel: 'agx_outgoing_replays',
    claim: (system, limit) => claimReplays(system, Math.min(limit, AT_ONCE)),
    start: (_client, { organization_id, id }) =>
      db.tenant(organization_id, SYSTEM, (tx) => advanceReplay(tx, id)),
    failed: releaseReplays,
  }
}
