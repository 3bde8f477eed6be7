import { MATCHED_AT_ONCE, matchEvents } from '../../db/outgoing/match.ts'
import type { Queue } from '../relay.ts'

/**
 * The first stage of outgoing webhooks: turns events of the outbox into deliveries. It starts no workflow: its claim
 * does all the work and returns no rows.
 */
export const eventsQueue: Queue<never> = {
  name: 'events',
  channel: 'agx_events',
  async claim(system) {
    while ((await matchEvents(system)) === MATCHED_AT_ONCE);
    return []
  },
  async start() {},
  async started() {},
  async refused() {},
}
