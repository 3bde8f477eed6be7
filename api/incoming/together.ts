import { takeFromWindow } from '../../db/access/limits.ts'
import type { Subscription } from '../../db/access/plans.ts'
import { takeIncomingQuota } from '../../db/incoming/quota.ts'
import {
  type Caller,
  callerKey,
  findReceivers,
  hex,
  incomingMinute,
  type Receiver,
} from '../../db/incoming/receiving.ts'
import { Batcher } from '../../db/postgres/batcher.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { AppDeps } from '../deps.ts'
import { coalesce } from '../http/coalesce.ts'
import { type Accepted, writeTogether } from './write.ts'

/**
 * What concurrent requests do together, in one statement or one transaction: under load most of a request's time would
 * be round trips, waits for the rows of the counters, and commits.
 */
export interface Together {
  findReceiver: (caller: Caller) => Promise<Receiver | undefined>
  /** By webhook: the used amount of its minute, after each request. */
  minutes: Batcher<Receiver, number>
  /** By organization: whether its month allows the request, and its limit. */
  months: Batcher<Subscription, { granted: boolean; limit: number }>
  /** By webhook and its settings: the answers of accepted requests. */
  writes: Batcher<Accepted, object>
}

export interface IncomingDeps extends AppDeps {
  together: Together
}

/** A batch of large payloads would hold up the others, and the event loop. */
const MAX_BYTES = 1024 * 1024

export function createTogether(db: Database): Together {
  const { system } = db
  return {
    findReceiver: coalesce(callerKey, (callers) => findReceivers(system, callers)),
    minutes: new Batcher(async (webhooks) => {
      const { organization_id, id } = webhooks[0]!
      const rule = { ...incomingMinute(organization_id, id), limit: Number.POSITIVE_INFINITY }
      const { used } = await takeFromWindow(system, rule, webhooks.length)
      return webhooks.map((_, i) => used - webhooks.length + i + 1)
    }),
    months: new Batcher(async (subscriptions, organizationId) => {
      // The plan may have changed meanwhile.
      const newest = subscriptions.at(-1)!
      const options = { requests: subscriptions.length, isFlushedLater: true }
      const { granted, limit } = await takeIncomingQuota(system, organizationId, newest, options)
      return subscriptions.map((_, i) => ({ granted: i < granted, limit }))
    }),
    writes: new Batcher((all) => writeTogether(db, all), {
      bytes: MAX_BYTES,
      bytesOf: ({ call }) => call.content!.length,
      // The second one of a delivery gets the answer of the first.
      idOf: ({ call: { delivery } }) => (delivery?.has_delivery_id ? hex(delivery.fingerprint) : undefined),
    }),
  }
}
