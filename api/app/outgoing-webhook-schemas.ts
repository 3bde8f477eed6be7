import { z } from 'zod'
import { WEBHOOK_STATUSES } from '../../db/model/incoming/types.ts'
import { DELIVERY_STATUSES, HELD_FOR } from '../../db/model/outgoing/statuses.ts'
import { MAX_AHEAD_DAYS } from '../../db/outgoing/actions.ts'
import { ATTEMPT_STATUSES } from '../../db/outgoing/deliveries.ts'
import { checkBodyWhen } from '../../workflows/language/check-events.ts'
import { HEADER_NAME } from '../../workflows/nodes/http-fields.ts'
import {
  EVENT_NAME,
  exampleEvent,
  isWildcard,
  misspelt,
  nearestEvent,
} from '../../workflows/shared/events.ts'
import { pageControls, period } from '../http/list-query.ts'
import { standardSecret } from '../http/standard-secret.ts'

const traceId = z.string().meta({
  description:
    'The trace (W3C Trace Context) of the request that led to the event; each attempt passes it on in `traceparent`.',
})

export const params = z.object({ webhook_id: z.uuid() })
export const deliveryParams = z.object({ delivery_id: z.uuid() })

/** Headers that the service or the connection sets. */
const RESERVED = new Set([
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
  'content-type',
  'content-length',
  'user-agent',
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'content-encoding',
  'traceparent',
])

const headers = z
  .record(
    z
      .string()
      .max(100)
      .regex(HEADER_NAME, 'is not a header name')
      .toLowerCase()
      .refine((name) => !RESERVED.has(name), 'is set by the service'),
    z
      .string()
      .max(4_000)
      .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'has a character that is not allowed in a header'),
  )
  .refine((all) => Object.keys(all).length <= 20, 'must have at most 20 headers')
  .meta({ description: 'Headers of every delivery. Values are stored encrypted and never returned.' })

/** Schema of an event name, and with `wildcards` also of a pattern. Subscriptions and test events share it. */
const eventPattern = ({ wildcards }: { wildcards: boolean }) =>
  z.string().superRefine((name, ctx) => {
    const shaped = EVENT_NAME.test(name) || (wildcards && isWildcard(name))
    const meant = shaped ? misspelt(name) : isWildcard(name) ? exampleEvent(name) : nearestEvent(name)
    if (shaped && meant === undefined) return
    const forms = wildcards ? '<entity>.<action>, <entity>.* or *' : '<entity>.<action>'
    const examples = wildcards ? 'contact.created, contact.*, *' : 'contact.created'
    ctx.addIssue({
      code: 'custom',
      message: shaped ? 'is not an event' : `is not ${forms}`,
      params: {
        type: 'unknown_event',
        hint: meant ? `did you mean ${meant}?` : `GET /v1/events lists them: ${examples}`,
      },
    })
  })

const values = {
  name: z.string().trim().min(1).max(100),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .meta({ description: 'The URL: https, unless the operator allows http.' }),
  events: z
    .array(eventPattern({ wildcards: true }))
    .min(1)
    .max(200)
    .transform((names) => [...new Set(names)])
    .meta({
      description:
        'Names of `GET /v1/events`, or any `<entity>.<action>` that a workflow raises. `contact.*` is every event of contacts, `*` every event.',
    }),
  when: z
    .string()
    .max(2_000)
    .superRefine((when, ctx) => {
      for (const { message, hint, code } of checkBodyWhen(when))
        ctx.addIssue({ code: 'custom', message, params: { type: code, ...(hint ? { hint } : {}) } })
    })
    .nullable()
    .meta({
      description:
        'A placeholder that must hold for an event to be delivered, such as `{{ data.amount > 1000 }}`. It reads the members of the body of the delivery: `id`, `event`, `created_at`, `data`, `previous`. It does not hold for an event that lacks a value which it reads. null: all events.',
    }),
  ordered: z.boolean().meta({
    description:
      'Whether deliveries about the same record are sent in sequence (FIFO), in the order of their events: a delivery waits until the earlier ones have ended, including their retries. Deliveries about different records do not wait for each other.',
  }),
  retry_schedule: z.array(z.number().int().min(1).max(86_400)).max(20).nullable().meta({
    description:
      'Seconds before each retry; empty for no retry. null: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h.',
  }),
  timeout_ms: z.number().int().min(500).max(15_000).meta({ description: 'The time limit of an attempt.' }),
  concurrency: z
    .number()
    .int()
    .min(1)
    .max(100)
    .meta({ description: 'The number of concurrent attempts. Waiting retries do not count.' }),
  rate_per_minute: z.number().int().min(1).max(100_000).nullable().meta({
    description:
      'The maximum number of attempts per minute (UTC), including retries; further deliveries wait for the next minute. null: no limit.',
  }),
}

export const createBody = z
  .strictObject({
    name: values.name,
    url: values.url,
    events: values.events,
    secret: standardSecret.optional(),
    headers: headers.default({}),
    when: values.when.default(null),
    ordered: values.ordered.default(false),
    retry_schedule: values.retry_schedule.default(null),
    timeout_ms: values.timeout_ms.default(15_000),
    concurrency: values.concurrency.default(10),
    rate_per_minute: values.rate_per_minute.default(null),
  })
  .meta({ id: 'OutgoingWebhookCreate' })

export const patchBody = z
  .strictObject({ ...values, headers, status: z.enum(WEBHOOK_STATUSES) })
  .partial()
  .meta({ id: 'OutgoingWebhookUpdate' })

export const rotateBody = z
  .strictObject({
    overlap_hours: z.number().int().min(0).max(168).default(24),
    secret: standardSecret.optional(),
  })
  .meta({ id: 'OutgoingWebhookSecretRotation' })
  .prefault({})

export const testBody = z
  .strictObject({
    event: eventPattern({ wildcards: false })
      .optional()
      .meta({ description: 'The event. Default: the first event of the webhook.' }),
  })
  .meta({ id: 'OutgoingWebhookTestRequest' })
  .prefault({})

export const rescheduleBody = z
  .strictObject({
    at: z.iso
      .datetime({ offset: true })
      .meta({ description: `The time of the next attempt, at most ${MAX_AHEAD_DAYS} days ahead.` }),
  })
  .meta({ id: 'DeliveryReschedule' })

export const retargetBody = z
  .strictObject({ webhook_id: z.uuid().meta({ description: 'The outgoing webhook to send the event to.' }) })
  .meta({ id: 'DeliveryRetarget' })

export const webhookSchema = z
  .object({
    object: z.literal('outgoing_webhook'),
    id: z.uuid(),
    name: z.string(),
    url: z.string().meta({
      description:
        'The URL. Because it can contain a token, callers that cannot change webhooks see only its origin, followed by `/…`.',
    }),
    events: z.array(z.string()),
    when: z.string().nullable(),
    ordered: z.boolean(),
    status: z.enum(WEBHOOK_STATUSES),
    status_reason: z
      .string()
      .nullable()
      .meta({ description: 'The reason why the service deactivated the webhook.' }),
    header_names: z.array(z.string()),
    retry_schedule: z.array(z.int()).nullable(),
    timeout_ms: z.int(),
    concurrency: z.int(),
    rate_per_minute: z.int().nullable(),
    failing_since: z.iso.datetime().nullable(),
    backoff_until: z.iso.datetime().nullable().meta({
      description: 'Nobody answers at the URL: new deliveries wait, and one is tried after this time.',
    }),
    previous_secret_expires_at: z.iso.datetime().nullable().meta({
      description:
        'The time until which the previous secret also signs; null: only the current secret signs.',
    }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'OutgoingWebhook' })

export const withSecret = webhookSchema
  .extend({
    secret: z
      .string()
      .meta({ description: 'The secret that signs deliveries (Standard Webhooks). Returned only once.' }),
  })
  .meta({ id: 'OutgoingWebhookWithSecret' })

export const deliveryQuery = z.strictObject({
  ...pageControls,
  status: z.enum(DELIVERY_STATUSES).optional().describe('Deliveries with this status.'),
  event: z
    .string()
    .refine((name) => EVENT_NAME.test(name) || isWildcard(name), 'must be <entity>.<action>, <entity>.* or *')
    .optional()
    .describe('Deliveries of this event; `contact.*` is every event of contacts.'),
  code: z
    .string()
    .regex(/^([1-5]xx|[1-5]\d\d)$/, 'must be an HTTP status such as 503, or a class such as 5xx')
    .optional()
    .describe(
      'Deliveries whose last response had this HTTP status, such as `503`, or a status of this class: `5xx`.',
    ),
  record_id: z.uuid().optional().describe('Deliveries of events about this record.'),
  ...period,
})

export const allDeliveriesQuery = deliveryQuery.extend({
  webhook_id: z.uuid().optional().describe('Deliveries to this outgoing webhook.'),
})

export const deliverySchema = z
  .object({
    object: z.literal('delivery'),
    id: z.uuid(),
    webhook_id: z.uuid(),
    event_id: z.uuid(),
    message_id: z.string().meta({
      description:
        'The `webhook-id` header of each attempt; the same for all resends of the event to the webhook.',
    }),
    event: z.string(),
    record_id: z.uuid().nullable().meta({ description: 'The record or run that the event is about.' }),
    test: z.boolean(),
    generation: z.int().meta({ description: 'The number of earlier deliveries of the event.' }),
    status: z.enum(DELIVERY_STATUSES),
    held_for: z.enum(HELD_FOR).nullable().meta({
      description:
        'The reason why the delivery is held: the webhook is inactive, the quota is exceeded, it is paused, or an operator paused it in Temporal.',
    }),
    attempt_count: z.int(),
    http_status: z
      .int()
      .nullable()
      .meta({ description: 'The HTTP status of the last response; null if no attempt got one.' }),
    next_attempt_at: z.iso.datetime().nullable(),
    error: z.string().nullable(),
    created_at: z.iso.datetime(),
    started_at: z.iso.datetime().nullable(),
    ended_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Delivery' })

export const deliveryDetailSchema = deliverySchema
  .extend({
    data: z.record(z.string(), z.unknown()),
    previous: z.record(z.string(), z.unknown()).nullable(),
    trace_id: traceId,
    attempts: z.array(
      z
        .object({
          attempt: z.int(),
          status: z.enum(ATTEMPT_STATUSES).meta({ description: '`unknown`: in progress, or interrupted.' }),
          started_at: z.iso.datetime(),
          http_status: z.int().nullable(),
          duration_ms: z.int().nullable(),
          response_headers: z.record(z.string(), z.string()).nullable(),
          response_body: z.string().nullable().meta({ description: 'The first 20,000 bytes.' }),
          error: z.string().nullable(),
        })
        .meta({ id: 'DeliveryAttempt' }),
    ),
  })
  .meta({ id: 'DeliveryDetails' })
