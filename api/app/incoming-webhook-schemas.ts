import { z } from 'zod'
import { LOG_ACTIONS, LOG_STATUSES } from '../../db/model/incoming/log.ts'
import { programsOf } from '../../db/model/incoming/mapping/patterns.ts'
import { SENDERS } from '../../db/model/incoming/mapping/senders/index.ts'
import { TARGET_ENTITIES } from '../../db/model/incoming/target-entity.ts'
import {
  FURTHER_KINDS,
  SENDER_VERIFICATIONS,
  WEBHOOK_STATUSES,
  WRITES,
} from '../../db/model/incoming/types.ts'
import { PATTERN } from '../../workflows/shared/limits.ts'
import { isUnsupportedPath } from '../../workflows/shared/paths.ts'
import { isSecretName } from '../../workflows/shared/secret-names.ts'
import { isIpOrRange } from '../http/client-ip.ts'
import { pageControls, period } from '../http/list-query.ts'
import { sourceInput, sourceSchema } from './incoming-source.ts'
import { condition, fieldMapping, path } from './mapping-schema.ts'

export const params = z.object({ webhook_id: z.uuid() })
export const logParams = z.object({ webhook_id: z.uuid(), log_id: z.uuid() })

/** Some senders (Stripe, Shopify) generate the secret themselves. */
export const secret = z.string().min(16).max(200)

export const verification = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.enum(SENDER_VERIFICATIONS) }).meta({ id: 'SenderVerification' }),
    z
      .strictObject({
        type: z.literal('basic'),
        // Without \p{Cc}: a pattern of JSON Schema has no flag `u`.
        username: z
          .string()
          .regex(/^[ -9;-~\u00a0-\uffff]{1,100}$/, 'must have no colon and no control character'),
      })
      .meta({ id: 'BasicVerification' }),
    z
      .strictObject({
        type: z.literal('hmac'),
        header: z.string().regex(/^[A-Za-z0-9-]{1,100}$/, 'is not a header name'),
        algorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256'),
        encoding: z.enum(['hex', 'base64']).default('hex'),
        prefix: z.string().max(20).default(''),
      })
      .meta({ id: 'HmacVerification' }),
  ])
  .meta({
    id: 'Verification',
    description:
      'How requests are verified: by the secret in the header `X-Webhook-Secret` (`secret`), in the URL (`token`: `?token=…` or a last segment of the path) or as the password of HTTP basic (`basic`), or by a signature of the raw body. `hubspot` and `twilio` sign the URL too: they need PUBLIC_URL to be the address that the sender calls. The secret of `sendgrid` is its public key.',
  })

/** A list, or text with one entry per line. */
const ipWhitelist = z.preprocess(
  (value) => (typeof value === 'string' ? value.split(/\s+/).filter(Boolean) : value),
  z.array(z.string().refine(isIpOrRange, 'is neither an IP address nor a CIDR range')).max(100),
)

/** Senders give up soon: Slack after 3 seconds, Shopify after 5, Twilio after 15. */
const RESPONSE_WAIT = 10

/** Secret headers, and secret fields, of a webhook. */
const SECRET_PLACES = 50

const PATH = /^(payload|record|webhook|headers|query)([.[].{0,200})?$/
const PATH_RULE = 'must begin with payload, record, webhook, headers or query'

const KEY = /^(email|external_id|custom_fields\.[a-z][a-z0-9_]{0,62}|payload\.[^*]+)$/

const values = {
  name: z.string().trim().min(1).max(100),
  description: z.string().max(1_000),
  sender: z
    .enum([...SENDERS.keys()])
    .meta({
      id: 'KnownSender',
      description:
        'A known sender (GET /v1/webhooks/incoming/senders): its requests are mapped as it sends them. Sets `verification`, `dedupe_window` and `secret_fields` to what it needs. Null: the sender is recognised by each request.',
    })
    .nullable(),
  verification,
  ip_whitelist: ipWhitelist,
  rate_limit: z.number().int().min(1).max(100_000).meta({ description: 'Requests per minute.' }),
  burst: z
    .number()
    .int()
    .min(0)
    .max(100_000)
    .meta({ description: 'Additional requests per minute, except those that the previous minute used.' }),
  block: z
    .strictObject({ after: z.number().int().min(1).max(1_000), minutes: z.number().int().min(1).max(1_440) })
    .meta({
      id: 'BlockRule',
      description:
        'Blocks an IP address for `minutes` after it exceeded the limit `after` times within an hour.',
    })
    .nullable(),
  target_entity: z
    .enum(TARGET_ENTITIES, { error: `must be one of ${TARGET_ENTITIES.join(', ')}` })
    .meta({ description: 'What requests write. `none`: no record; they only start workflows.' }),
  also_writes: z.array(z.enum(FURTHER_KINDS)).max(FURTHER_KINDS.length).meta({
    id: 'AlsoWrites',
    description:
      'What requests may write besides: companies that payloads name, and notes. Needs their scopes if the mapping writes them. Default: what the caller may write. The rest is left out, with a warning.',
  }),
  field_mapping: fieldMapping,
  deduplication: z
    .strictObject({
      action: z.enum(['Skip', 'Update', 'Create Anyway']).default('Update'),
      by: z
        .string()
        .max(200)
        .regex(KEY, 'must be email, external_id, custom_fields.<name> or payload.<path>')
        .refine(
          (by) => !isUnsupportedPath(by.replace(/^payload\./, '$.')),
          'must name one value of the payload',
        )
        .default('email')
        .meta({
          description:
            'The key that identifies duplicates: `email` (targets without one use `external_id`), `external_id`, `custom_fields.<name>` of a unique definition, or a path into the payload, `payload.order.id`, whose value becomes the external_id of the record.',
        }),
    })
    .meta({ id: 'Deduplication' }),
  dedupe_window: z.int().min(0).max(86_400).meta({
    id: 'DedupeWindow',
    description:
      'Seconds in which a request without a delivery id, whose body equals that of an accepted one, gets its answer and does nothing. 0 (default, unless `sender` says otherwise): each is a new one. Requests with a delivery id are recognised for 4 days.',
  }),
  secret_headers: z
    .array(
      z
        .string()
        .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/, 'is not a header name')
        .toLowerCase(),
    )
    .max(SECRET_PLACES)
    .meta({
      description:
        'Names of headers, in any case, whose values the log masks. Those that look like credentials are masked in any case.',
    }),
  secret_fields: z.array(path).max(SECRET_PLACES).meta({
    id: 'SecretFields',
    description:
      'Paths into the payload, as in mapping rules (`user.ssn`); a name after a list is that of each item. The mapping reads these values; logs, samples, previews, replays and the runs of the workflow show `[masked]`, also where the request repeats a value of 8 characters or more. The log shows such a payload as JSON; a replay reads the request as received, which is stored encrypted.',
  }),
  workflow_id: z.uuid().nullable(),
  workflow_inputs: z.record(z.string().min(1).max(100), z.string().regex(PATH, PATH_RULE)).meta({
    description:
      'The path of the value for each workflow input: `payload.contact.email`, `record.id`. Texts are read as the types of the inputs. If one does not fit, the answer and the log say so.',
  }),
  listeners: z
    .array(
      z
        .strictObject({
          workflow_id: z.uuid(),
          workflow_inputs: z
            .record(z.string().min(1).max(100), z.string().regex(PATH, PATH_RULE))
            .default({}),
          when: condition
            .optional()
            .meta({ description: 'Starts the workflow only for requests whose payload fulfils it.' }),
        })
        .meta({ id: 'IncomingWebhookListener' }),
    )
    .max(10)
    .refine(
      (listeners) => programsOf(listeners) <= PATTERN.programs,
      `have patterns that are too large together (${PATTERN.programs} instructions of RE2 at most)`,
    )
    .meta({ description: 'Further workflows that each request starts, in addition to `workflow_id`.' }),
  trigger_headers: z
    .array(
      z
        .string()
        .regex(/^[A-Za-z0-9-]{1,100}$/, 'is not a header name')
        .refine((name) => !isSecretName(name), 'is a secret')
        .toLowerCase(),
    )
    .max(20)
    .meta({ description: 'The headers that workflows read as `trigger.headers`, by name in lower case.' }),
  trigger_query: z
    .array(
      z
        .string()
        .min(1)
        .max(100)
        .refine((name) => name !== 'token' && !isSecretName(name), 'is a secret'),
    )
    .max(20)
    .meta({ description: 'The query parameters that workflows read as `trigger.query`.' }),
  response_wait: z.int().min(0).max(RESPONSE_WAIT).meta({
    description:
      'Seconds in which a request waits for a node `respond` of a workflow that it started, whose answer the sender then gets; after that, or once the runs have ended without one, it gets the usual answer. 0 (default): at once. The records of a batch are answered at once.',
  }),
}

export const createBody = z
  .strictObject({
    name: values.name,
    description: values.description.default(''),
    secret: secret.optional(),
    sender: values.sender.default(null),
    verification: verification.optional().meta({ description: 'Default: that of `sender`, else `secret`.' }),
    ip_whitelist: ipWhitelist.default([]),
    rate_limit: values.rate_limit.default(60),
    burst: values.burst.default(0),
    block: values.block.default(null),
    target_entity: values.target_entity.default('Contact'),
    also_writes: values.also_writes.optional(),
    field_mapping: values.field_mapping.default({ mode: 'automatic' }),
    deduplication: values.deduplication.prefault({}),
    dedupe_window: values.dedupe_window.optional(),
    secret_headers: values.secret_headers.default([]),
    secret_fields: values.secret_fields.optional(),
    workflow_id: values.workflow_id.default(null),
    workflow_inputs: values.workflow_inputs.default({}),
    listeners: values.listeners.default([]),
    trigger_headers: values.trigger_headers.default([]),
    trigger_query: values.trigger_query.default([]),
    response_wait: values.response_wait.default(0),
    source: sourceInput.default(null),
  })
  .meta({ id: 'IncomingWebhookCreate' })

export const patchBody = z
  .strictObject({ ...values, source: sourceInput, status: z.enum(WEBHOOK_STATUSES) })
  .partial()
  .meta({ id: 'IncomingWebhookUpdate' })

export const webhookSchema = z
  .object({
    object: z.literal('incoming_webhook'),
    id: z.uuid(),
    url: z.string(),
    status: z.enum(WEBHOOK_STATUSES),
    ...values,
    ip_whitelist: z.array(z.string()),
    source: sourceSchema,
    polled_at: z.iso.datetime().nullable(),
    next_poll_at: z.iso.datetime().nullable(),
    poll_problem: z.string().nullable().meta({ description: 'Why the last poll of `source` failed.' }),
    poll_failures: z.int().meta({
      description:
        'Failed polls in a row. The next follows after 1, 5 and 15 minutes, at most the interval; after refused credentials, later each time.',
    }),
    capturing_until: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'The time until which the next request is captured as a sample.' }),
    sample_log_id: z.uuid().nullable().meta({ description: 'The log entry of the captured sample.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'IncomingWebhook' })
export const webhookWithProblem = webhookSchema
  .extend({
    problem: z.string().nullable().meta({
      description:
        'Why a workflow does not start, or the rules of the mapping that wrote nothing in the last requests (10 to 100, since the last change): most likely their path or condition is wrong. A rule with a `default` always writes.',
    }),
  })
  .meta({ id: 'IncomingWebhookWithProblem' })
export const withSecret = webhookSchema
  .extend({
    secret: z.string().meta({ description: 'The secret. Returned only once.' }),
    url_with_token: z
      .string()
      .optional()
      .meta({ description: 'With the verification `token`: the URL for the sender. Returned only once.' }),
  })
  .meta({ id: 'IncomingWebhookWithSecret' })

const logFilters = {
  status: z.enum(LOG_STATUSES).optional().describe('Entries with this status.'),
  action: z.enum(LOG_ACTIONS).optional().describe('Entries with this action.'),
  source_ip: z.string().max(45).optional().describe('Entries from this IP address.'),
  replay_id: z.uuid().toLowerCase().optional().describe('Entries of this replay.'),
  ...period,
}

export const logExportQuery = z.strictObject(logFilters)

export const logQuery = z.strictObject({
  ...pageControls,
  ...logFilters,
})

export const logSchema = z
  .object({
    object: z.literal('incoming_webhook_log'),
    id: z.uuid(),
    webhook_id: z.uuid(),
    created_at: z.iso.datetime(),
    source_ip: z.string(),
    status: z.enum(LOG_STATUSES),
    action: z.enum(LOG_ACTIONS).nullable(),
    http_status: z.int(),
    payload_size: z.int().meta({ description: 'The size in bytes.' }),
    response_time_ms: z.number(),
    error: z.string().nullable(),
    message: z.string().nullable(),
    record_id: z.uuid().nullable(),
    run_id: z.uuid().nullable(),
    warnings: z.array(z.string()),
    requests: z.int().meta({
      description:
        'The number of requests. All requests of a blocked address during one block share an entry, and those of an address with another method than POST in a minute.',
    }),
    replay_of: z.uuid().nullable().meta({ description: 'For a replay: the original log entry.' }),
    replay_id: z.uuid().nullable(),
    replay_problem: z.string().nullable().meta({
      description:
        'The reason why the request cannot be replayed; null if it can. A payload above 65,536 characters is stored whole if the request failed, exceeded the quota or was captured as a sample. If it succeeded or exceeded the rate limit, only the beginning is stored.',
    }),
  })
  .meta({ id: 'IncomingWebhookLog' })
export const logDetailSchema = logSchema
  .extend({
    headers: z.record(z.string(), z.string()),
    payload: z.string().nullable(),
    payload_truncated: z.boolean().meta({ description: 'Whether `payload` contains only the beginning.' }),
    mapped_data: z.unknown(),
    result: z
      .object({
        success: z.boolean(),
        message: z.string().nullable(),
        error: z.string().optional(),
        entity: z.string().nullable().optional(),
        action: z.enum(WRITES).optional(),
        record_id: z.uuid().nullable().optional(),
      })
      .meta({
        id: 'IncomingWebhookOutcome',
        description: 'The response to the sender, unless a workflow answered.',
      }),
    error_details: z.unknown(),
    verified: z.boolean().meta({
      description: 'Whether the request passed verification. Only verified requests can be replayed.',
    }),
  })
  .meta({ id: 'IncomingWebhookLogDetails' })

export const testBody = z
  .strictObject({
    payload: z.unknown().meta({ description: 'The payload: JSON as a value, a form or XML as text.' }),
    content_type: z.string().max(200).default('application/json'),
  })
  .meta({ id: 'IncomingWebhookTestRequest' })
export const testSchema = z
  .object({
    object: z.literal('incoming_webhook_test'),
    valid: z.boolean(),
    entity: z.string().nullable(),
    mapped_data: z.unknown(),
    details: z.record(z.string(), z.string()),
  })
  .meta({ id: 'IncomingWebhookTest' })
export const rotateBody = z
  .strictObject({ overlap_hours: z.number().int().min(0).max(24).default(0), secret: secret.optional() })
  .meta({ id: 'IncomingWebhookSecretRotation' })
  .prefault({})
