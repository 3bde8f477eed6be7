import { v7 as uuidv7 } from 'uuid'
import type { Events } from '../../workflows/effects/events.ts'
import type { EffectHost } from './define.ts'

/** Buffers events until the node has succeeded: a failed node raises none. */
export const eventsOf = ({ raise, once }: EffectHost): Events => ({
  emit: (name, data) =>
    once(
      'event',
      // The event is in the outbox already.
      async (id) => id,
      async () => {
        const id = uuidv7()
        raise({ id, name, data })
        return id
      },
      (id) => id,
    ),
})
