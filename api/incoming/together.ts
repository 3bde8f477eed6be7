import { takeFromWindow } from '../../db/access/limits.ts'
import { type Acceptance, accept, type IncomingRequest } from '../../db/incoming/accept.ts'
import { claimsOf, hex } from '../../db/incoming/deliveries.ts'
import { takeIncomingQuota } from '../../db/incoming/quota.ts'
import {
  type Caller,
  callerKey,
  findReceivers,
  incomingMinute,
  type Receiver,
} from '../../db/incoming/receiving.ts'
import { findResponses, type RunResponse } from '../../db/incoming/responses.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { RunKey } from '../../db/runs/views.ts'
import type { AppDeps } from '../deps.ts'
import { coalesce } from '../http/coalesce.ts'
import type { Slots } from '../http/slots.ts'
import { Batcher } from './batcher.ts'

/**
 * What concurrent requests do together, in one statement or one transaction: under load most of a request's time would
 * be round trips, waits for the rows of the counters, and commits.
 *
 * `npm run bench -- incoming --clients=128` prints the CPU time of a request in all processes (docs/performance.md). It
 * is 1.3 times that without the shared look-ups of webhooks, 1.5 times without those of the minute, 1.4 times without
 * those of the month, and 6 times without shared transactions.
 */
export interface Together {
  findReceiver(caller: Caller): Promise<Receiver | undefined>
  /** Counts requests in their webhook's minute; default: one. @returns the used amount of the minute after them. */
  countInMinute(webhook: Receiver, requests?: number): Promise<number>
  /** Counts a request in its organization's month, if that allows it. */
  takeFromMonth(webhook: Receiver): Promise<{ granted: boolean; limit: number }>
  /** Reads what a run has answered to its sender; undefined if the run is gone. */
  findResponse(run: RunKey): Promise<RunResponse | undefined>
  /** Writes requests to one webhook, with the same settings, in one transaction. `size`: bytes of the payload. */
  accept(webhook: Receiver, request: IncomingRequest, size: number): Promise<Acceptance>
}

export interface IncomingDeps extends AppDeps {
  together: Together
  /** Limits the requests that wait for the answer of a workflow. */
  responses: Slots
}

/** A batch of large payloads would hold up the others, and the event loop. */
const MAX_BYTES = 1024 * 1024

export function createTogether(db: Database): Together {
  const { system } = db
  const minutes = new Batcher(async (counts: { webhook: Receiver; requests: number }[]) => {
    const { organization_id, id } = counts[0]!.webhook
    const rule = { ...incomingMinute(organization_id, id), limit: Number.POSITIVE_INFINITY }
    const sum = counts.reduce((sum, { requests }) => sum + requests, 0)
    let { used } = await takeFromWindow(system, rule, sum)
    used -= sum
    return counts.map(({ requests }) => (used += requests))
  })
  const months = new Batcher(async (webhooks: Receiver[], organizationId) => {
    // The plan may have changed meanwhile.
    const newest = webhooks.at(-1)!
    const options = { requests: webhooks.length, isFlushedLater: true }
    const { granted, limit } = await takeIncomingQuota(system, organizationId, newest, options)
    return webhooks.map((_, i) => ({ granted: i < granted, limit }))
  })
  const writes = new Batcher(
    (all: { webhook: Receiver; request: IncomingRequest; size: number }[]) =>
      accept(
        db,
        all[0]!.webhook,
        all.map(({ request }) => request),
      ),
    {
      bytes: MAX_BYTES,
      bytesOf: ({ size }) => size,
      // The second one of a delivery gets the answer of the first.
      idsOf: ({ webhook, request: { log, signed } }) =>
        claimsOf(webhook, { ...log, ...(signed && { signed }) }).map(({ fingerprint }) => hex(fingerprint)),
    },
  )
  return {
    findReceiver: coalesce(callerKey, (callers) => findReceivers(system, callers)),
    countInMinute: (webhook, requests = 1) => minutes.add(webhook.id, { webhook, requests }),
    takeFromMonth: (webhook) => months.add(webhook.organization_id, webhook),
    findResponse: coalesce(
      ({ id }) => id,
      (runs) => findResponses(system, runs),
    ),
    accept: (webhook, request, size) =>
      writes.add(`${webhook.id} ${webhook.updated_at.getTime()}`, { webhook, request, size }),
  }
}
