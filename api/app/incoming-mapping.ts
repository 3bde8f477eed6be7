import { z } from 'zod'
import { captureEntry, captureNext } from '../../db/incoming/capture.ts'
import { getEntry } from '../../db/incoming/replay-entries.ts'
import { bodyOf, previewPayload } from '../../db/incoming/replay-entry.ts'
import { parsedBy } from '../../db/incoming/replays.ts'
import { withSensitiveTargets } from '../../db/incoming/sensitive-targets.ts'
import { getIncomingWebhook } from '../../db/incoming/webhooks.ts'
import { leastRole } from '../../db/model/access/roles.ts'
import { invalid } from '../../db/model/errors.ts'
import type { Body } from '../../db/model/incoming/map-body.ts'
import type { ProposedRule } from '../../db/model/incoming/mapping/propose.ts'
import { kindOf, TARGET_ENTITIES, targetEntityOf } from '../../db/model/incoming/target-entity.ts'
import type { IncomingWebhook } from '../../db/model/incoming/types.ts'
import { type AppRoute, appRoute, type RouteRequest } from '../http/route.ts'
import { sampleBody } from '../incoming/test-mapping.ts'
import { previewSchema } from './incoming-outcome-schema.ts'
import { assertMapping, scopesOf } from './incoming-webhook-rules.ts'
import { params } from './incoming-webhook-schemas.ts'
import { fieldMapping, mappingRule } from './mapping-schema.ts'

const tag = 'Incoming webhooks'

const sample = {
  payload: z
    .unknown()
    .optional()
    .meta({ description: 'The sample: JSON as a value, a form or XML as text.' }),
  content_type: z.string().max(200).default('application/json'),
  log_id: z
    .uuid()
    .toLowerCase()
    .optional()
    .meta({ description: 'Uses a log entry as the sample. Default: the captured sample.' }),
  target_entity: z
    .enum(TARGET_ENTITIES)
    .optional()
    .meta({ description: 'Default: the mapping of the webhook.' }),
}

const captureBody = z
  .strictObject({
    minutes: z.int().min(1).max(60).default(10).meta({ description: 'The time to wait for a request.' }),
    log_id: sample.log_id.meta({
      description: 'Uses this log entry as the sample, without waiting for a request.',
    }),
  })
  .meta({ id: 'IncomingWebhookCaptureRequest' })
  .prefault({})

const captureSchema = z
  .object({
    object: z.literal('incoming_webhook_capture'),
    webhook_id: z.uuid(),
    capturing_until: z.iso.datetime().nullable(),
    log_id: z.uuid().nullable().meta({ description: 'The log entry of the sample.' }),
  })
  .meta({ id: 'IncomingWebhookCapture' })

const proposeBody = z.strictObject(sample).meta({ id: 'IncomingMappingProposalRequest' }).prefault({})
const proposalSchema = z
  .object({
    object: z.literal('incoming_mapping_proposal'),
    webhook_id: z.uuid(),
    target_entity: z.enum(TARGET_ENTITIES),
    sender: z.string().nullable().meta({ description: 'The known sender of the sample.' }),
    is_ping: z.boolean().meta({ description: 'The sample is a set-up request, which has no data.' }),
    field_mapping: z
      .object({ mode: z.literal('manual'), rules: z.array(mappingRule) })
      .meta({ id: 'ProposedMapping' }),
    reasons: z
      .array(z.object({ to: z.string(), from: z.string(), value: z.unknown(), reason: z.string() }))
      .meta({ description: 'The result of each rule, in their order.' }),
    unmapped: z.array(z.string()).meta({ description: 'The paths that no rule reads.' }),
    warnings: z.array(z.string()),
  })
  .meta({ id: 'IncomingMappingProposal' })

const previewBody = z
  .strictObject({
    ...sample,
    field_mapping: fieldMapping
      .optional()
      .meta({ description: 'A draft mapping. Default: the mapping of the webhook.' }),
  })
  .meta({ id: 'IncomingMappingPreviewRequest' })
  .prefault({})

const resultSchema = previewSchema
  .extend({ object: z.literal('incoming_mapping_preview'), webhook_id: z.uuid() })
  .meta({ id: 'IncomingMappingPreview' })

/** Mapping in three steps: capture a sample, propose a mapping from it, preview the mapping. */
export const incomingMappingRoutes: AppRoute[] = [
  appRoute({
    method: 'POST',
    path: '/webhooks/incoming/{webhook_id}/capture',
    role: leastRole('webhooks:write'),
    id: 'captureIncomingWebhookSample',
    tag,
    summary: 'Capture a sample',
    description:
      'Keeps the next verified request as the sample. The request gets a 200 and a log entry, but writes nothing; to write it, replay its log entry. Alternatively uses an existing log entry as the sample. The webhook shows `sample_log_id`.',
    params,
    body: captureBody,
    example: { minutes: 10 },
    response: { status: 200, schema: captureSchema },
    handler: ({ params: { webhook_id }, body: { log_id, minutes }, tenant }) =>
      tenant(async (tx) => {
        const webhook = log_id
          ? await captureEntry(tx, webhook_id, log_id)
          : await captureNext(tx, webhook_id, minutes)
        const { capturing_until, sample_log_id } = webhook
        return { object: 'incoming_webhook_capture', webhook_id, capturing_until, log_id: sample_log_id }
      }),
  }),
  appRoute({
    method: 'POST',
    path: '/webhooks/incoming/{webhook_id}/mapping/propose',
    role: leastRole('webhooks:write'),
    id: 'proposeIncomingMapping',
    tag,
    summary: 'Propose a mapping',
    description:
      'Proposes the rules that automatic mapping would apply to a sample, each with its reason. Writes nothing; to use the rules, save them as the `field_mapping` of the webhook.',
    idempotent: false,
    params,
    body: proposeBody,
    example: { payload: { email: 'ada@example.com', name: 'Ada Lovelace', plan: 'pro' } },
    response: { status: 200, schema: proposalSchema },
    handler: async (request) => {
      const { webhook, body } = await sampleOf(request)
      const { deps, caller } = request
      const { kind, id } = webhook
      if (kind === 'none') throw invalid([NO_RECORD])
      const { proposed, ...proposal } = await deps.compute.propose(
        caller.organization.id,
        body,
        kind,
        webhook.secret_fields,
        webhook.sender,
      )
      return {
        object: 'incoming_mapping_proposal',
        webhook_id: id,
        target_entity: targetEntityOf(kind),
        ...proposal,
        field_mapping: { mode: 'manual', rules: proposed.map(({ rule }) => rule) },
        reasons: proposed.map(toReason),
      }
    },
  }),
  appRoute({
    method: 'POST',
    path: '/webhooks/incoming/{webhook_id}/mapping/preview',
    role: leastRole('webhooks:write'),
    id: 'previewIncomingMapping',
    tag,
    summary: 'Preview a mapping',
    description:
      'Previews the effect of a sample with the mapping of the webhook or a draft: the record that it would create or update, the changes of its fields, and its errors. Writes nothing.',
    idempotent: false,
    params,
    body: previewBody,
    example: { payload: { email: 'ada@example.com', name: 'Ada Lovelace' } },
    response: { status: 200, schema: resultSchema },
    handler: async (request) => {
      const { webhook: stored, body } = await sampleOf(request)
      const webhook = { ...stored, field_mapping: request.body.field_mapping ?? stored.field_mapping }
      request.requireScopes(scopesOf(webhook))
      assertMapping(webhook)
      const { deps, caller } = request
      const parsed = await parsedBy(
        (...values) => deps.compute.mapBody(...values),
        caller.organization.id,
        body,
        webhook,
      )
      const preview = await request.tenant((tx) => previewPayload(tx, webhook, parsed))
      return { object: 'incoming_mapping_preview', webhook_id: webhook.id, ...preview }
    },
  }),
]

const NO_RECORD = {
  loc: ['body', 'target_entity'],
  msg: 'the webhook writes no record, so that nothing is mapped',
  type: 'invalid_value',
  hint: 'give the target_entity for which to propose a mapping',
}

const toReason = ({ rule: { to, from }, value, reason }: ProposedRule) => ({ to, from, value, reason })

type Request = RouteRequest<z.output<typeof params>, unknown, z.output<typeof proposeBody>>

/** The webhook with the target entity of the request, and the sample. Throws validation_error without a sample. */
async function sampleOf({
  params,
  body,
  tenant,
  deps,
  caller,
}: Request): Promise<{ webhook: IncomingWebhook; body: Body }> {
  return tenant(async (tx) => {
    const stored = await getIncomingWebhook(tx, params.webhook_id)
    const kind = body.target_entity ? kindOf(body.target_entity) : stored.kind
    const webhook = await withSensitiveTargets(tx, { ...stored, kind })
    if (body.payload !== undefined)
      return { webhook, body: { content: sampleBody(body.payload), type: body.content_type } }
    const logId = body.log_id ?? stored.sample_log_id
    if (!logId)
      throw invalid([
        {
          loc: ['body', 'payload'],
          msg: 'there is no sample',
          type: 'missing',
          hint: 'send a payload or a log_id, or capture a sample: POST …/capture',
        },
      ])
    const entry = await getEntry(tx, webhook.id, logId)
    const { secretFields, ...read } = bodyOf(caller.organization.id, entry, deps.secretsKey)
    const secret_fields = [...new Set([...webhook.secret_fields, ...secretFields])]
    return { webhook: { ...webhook, secret_fields }, body: read }
  })
}
