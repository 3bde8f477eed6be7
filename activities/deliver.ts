import { ApplicationFailure, Context } from '@temporalio/activity'
import { ApplicationFailureCategory } from '@temporalio/common'
import { SYSTEM } from '../db/model/actor.ts'
import { messageId } from '../db/model/outgoing/message-id.ts'
import { newSpanId, spanIdOf, type Traces } from '../db/model/spans.ts'
import type { TraceContext } from '../db/model/trace-context.ts'
import { type DeliveryJob, noteEndpointHealth } from '../db/outgoing/attempts.ts'
import { type AttemptResult, endAttempt } from '../db/outgoing/moves/attempts.ts'
import { markPaused } from '../db/outgoing/moves/holds.ts'
import { jittered } from '../db/outgoing/retry-schedule.ts'
import { renewSlot } from '../db/outgoing/slots.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { open, type SecretsKey } from '../db/process/seal.ts'
import type { DeliverAnswer, DeliverInput } from '../workflows/bundle/deliver.ts'
import { NodeError } from '../workflows/language/node-error.ts'
import { signatureHeaders } from '../workflows/shared/webhook-signature.ts'
import { withHeartbeat } from './heartbeat.ts'
import { holdSlot } from './hold-slot.ts'
import { type HttpClient, Unresolved } from './http/client.ts'
import { traceparent } from './http/traceparent.ts'
import { prepareAttempt, scheduleOf } from './prepare-attempt.ts'

const KEPT_BODY = 20_000
const MAX_RETRY_AFTER = 86_400

/** `deliverOnce` makes the first attempt; `deliverUntilDone` makes the retries, each when it is due. */
export function createDeliver(deps: DeliverDeps) {
  return {
    deliverOnce: (input: DeliverInput) => attempt(deps, input, { first: true }),
    async deliverUntilDone(input: DeliverInput): Promise<DeliverAnswer> {
      const answer = await withHeartbeat(() => attempt(deps, input, { first: false }))
      if (answer.status !== 'waiting') return answer
      throw ApplicationFailure.create({
        message: answer.error ?? 'not due yet',
        type: 'delivery_failed',
        nextRetryDelay: Math.max(1, answer.retry_in_ms ?? 1),
        // The worker does not log a benign failure as its own.
        category: ApplicationFailureCategory.BENIGN,
      })
    },
  }
}

export interface DeliverDeps {
  db: Database
  http: HttpClient
  secretsKey: SecretsKey
  /** The relay of this worker, to which the deliveries belong that it attempts. */
  relayId: string
  /** Absent if traces are not configured. */
  traces?: Traces | undefined
  /** Told of a webhook that the service made Inactive. */
  onDeactivated?: () => void
}

async function attempt(
  { db, http, secretsKey, relayId, traces, onDeactivated }: DeliverDeps,
  { organization_id, delivery_id, release = 0 }: DeliverInput,
  { first }: { first: boolean },
): Promise<DeliverAnswer> {
  const prepared = await prepareAttempt(db, { organization_id, delivery_id, release, relayId, first })
  if (prepared.done) return prepared.done
  const { job, number } = prepared

  const slot = holdSlot(() => db.tenant(organization_id, SYSTEM, (tx) => renewSlot(tx, delivery_id, number)))
  const start = Date.now()
  const trace: TraceContext = { traceId: job.trace_id, spanId: newSpanId() }
  const parent = traceparent(trace, traces)
  const { result, retryAfter } = await send(http, job, secretsKey, slot.signal, parent).finally(slot.release)
  traces?.record({
    name: 'deliver',
    kind: 'client',
    traceId: job.trace_id,
    id: trace.spanId!,
    parent: spanIdOf(job.event.id),
    start,
    end: Date.now(),
    failed: !result.succeeded,
    attributes: {
      'agx.organization_id': organization_id,
      'agx.delivery_id': delivery_id,
      'agx.webhook_id': job.webhook_id,
      'agx.event': job.event.event,
      'agx.attempt': number,
      'http.request.method': 'POST',
      'http.response.status_code': result.http_status,
    },
  })
  // Only attempts with a result count: the last one, too, is made at least once.
  const delay = scheduleOf(job)[job.answered]
  const final = result.succeeded || result.http_status === 410 || delay === undefined
  const wait = final ? 0 : Math.max(jittered(delay), retryAfter) * 1_000
  const { status, deactivated } = await db.tenant(organization_id, SYSTEM, (tx) =>
    record(tx, delivery_id, number, job, result, final ? null : new Date(Date.now() + wait)),
  )
  if (deactivated) onDeactivated?.()
  const error = result.error ? { error: result.error } : {}
  if (status === 'delivering') {
    // Recorded now, because a wake would undo the pause before the sweep records it.
    if (Context.current().cancellationDetails?.paused)
      await db.tenant(organization_id, SYSTEM, (tx) =>
        markPaused(tx, { id: delivery_id, organization_id, releases: release }, true),
      )
    return { status: 'waiting', ...error, retry_in_ms: wait }
  }
  return { status: status === undefined || status === 'queued' ? 'held' : status, ...error }
}

/** Locks the endpoint before the delivery, as all code does: it may become Inactive, which holds its deliveries. */
async function record(
  tx: Tenant,
  id: string,
  number: number,
  job: DeliveryJob,
  result: AttemptResult,
  next: Date | null,
) {
  const deactivated = await noteEndpointHealth(tx, job, result)
  const status = await endAttempt(tx, { id, webhookId: job.webhook_id }, number, result, next)
  return { status, deactivated }
}

async function send(
  http: HttpClient,
  { event, url, secrets_sealed, headers_sealed, timeout_ms, webhook_id, test }: DeliveryJob,
  key: SecretsKey,
  signal: AbortSignal,
  parent: string,
): Promise<{ result: AttemptResult; retryAfter: number }> {
  const { previous, ...rest } = event
  const body = JSON.stringify({
    ...rest,
    ...(previous === null ? {} : { previous }),
    ...(test ? { test: true } : {}),
  })
  const headers = {
    ...(headers_sealed ? (JSON.parse(open(key, headers_sealed)) as Record<string, string>) : {}),
    'content-type': 'application/json',
    'user-agent': 'agx-webhooks',
    traceparent: parent,
    ...signatureHeaders(
      secrets_sealed.map((sealed) => open(key, sealed)),
      { id: messageId(event.id, webhook_id), timestamp: new Date(), body },
    ),
  }
  const startedAt = performance.now()
  try {
    const answer = await http.exchange({
      method: 'POST',
      url,
      headers,
      body,
      signal,
      timeoutMs: timeout_ms,
      keepBytes: KEPT_BODY,
    })
    const succeeded = answer.status >= 200 && answer.status < 300
    return {
      result: {
        succeeded,
        http_status: answer.status,
        duration_ms: answer.durationMs,
        response_headers: answer.headers,
        response_body: answer.body.toString('utf8').replaceAll('\0', '\uFFFD'),
        error: succeeded ? null : `the receiver answered ${answer.status}`,
      },
      retryAfter: secondsOf(answer.headers['retry-after']),
    }
  } catch (error) {
    if (!(error instanceof NodeError)) throw error
    return {
      result: {
        succeeded: false,
        http_status: null,
        duration_ms: performance.now() - startedAt,
        response_headers: null,
        response_body: null,
        error: `${error.code}: ${error.message}`,
        unresolved: error instanceof Unresolved,
      },
      retryAfter: 0,
    }
  }
}

/** The delay of Retry-After, which is in seconds or a date; at most a day. */
function secondsOf(after: string | undefined): number {
  if (!after) return 0
  const seconds = /^\d+$/.test(after) ? Number(after) : (Date.parse(after) - Date.now()) / 1_000
  return seconds > 0 ? Math.min(seconds, MAX_RETRY_AFTER) : 0
}
