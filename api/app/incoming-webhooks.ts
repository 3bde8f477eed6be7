import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { mappingProblem } from '../../db/incoming/mapping-problem.ts'
import {
  createIncomingWebhook,
  deleteIncomingWebhook,
  getIncomingWebhook,
  listIncomingWebhooks,
  rotateIncomingSecret,
  sealedSecret,
  updateIncomingWebhook,
} from '../../db/incoming/webhooks.ts'
import { workflowProblem } from '../../db/incoming/workflow-problem.ts'
import { leastRole } from '../../db/model/access/roles.ts'
import { SENDERS } from '../../db/model/incoming/mapping/senders/index.ts'
import { withKind, withTargetEntity } from '../../db/model/incoming/target-entity.ts'
import type { IncomingWebhook, Verification } from '../../db/model/incoming/types.ts'
import { open, seal } from '../../db/process/seal.ts'
import { baseUrl } from '../http/base-url.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute, type RouteRequest } from '../http/route.ts'
import { sampleBody, testMapping } from '../incoming/test-mapping.ts'
import { incomingMappingRoutes } from './incoming-mapping.ts'
import { incomingReplayRoutes } from './incoming-replays.ts'
import { incomingSenderRoutes } from './incoming-senders.ts'
import { assertPassword, sourceColumns } from './incoming-source.ts'
import { incomingWebhookLogRoutes } from './incoming-webhook-logs.ts'
import {
  alsoWrites,
  assertDeduplication,
  assertInputs,
  assertKey,
  assertMapping,
  scopesOf,
} from './incoming-webhook-rules.ts'
import {
  createBody,
  params,
  patchBody,
  rotateBody,
  testBody,
  testSchema,
  webhookSchema,
  webhookWithProblem,
  withSecret,
} from './incoming-webhook-schemas.ts'
import { assertSecret, assertStoredSecret } from './incoming-webhook-secret.ts'
import { assertInputPaths, assertListeners, assertWorkflow } from './incoming-webhook-workflow.ts'

const tag = 'Incoming webhooks'

/** The settings that a known sender needs; without one, the defaults. */
function settingsOf(sender: string | null): OfSender {
  const { verification, dedupeWindow, secretFields } = SENDERS.get(sender ?? '') ?? {}
  return {
    verification: verification ?? { type: 'secret' },
    dedupe_window: dedupeWindow ?? 0,
    secret_fields: secretFields ?? [],
  }
}

type OfSender = { verification: Verification; dedupe_window: number; secret_fields: string[] }

/** Values with those of `defaults` in the place of undefined ones. */
function withDefaults<D extends object, T extends { [K in keyof D]?: D[K] | undefined }>(
  defaults: D,
  values: T,
): Omit<T, keyof D> & D {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(given) } as Omit<T, keyof D> & D
}

export const incomingWebhookRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/webhooks/incoming',
    role: leastRole('webhooks:read'),
    id: 'listIncomingWebhooks',
    tag,
    summary: 'List incoming webhooks',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(webhookSchema) },
    handler: (request) =>
      request.tenant(async (tx) => {
        const { query } = request
        const page = await listIncomingWebhooks(tx, { ...query, offset: offsetOf(query) })
        return presentList({ ...page, data: page.data.map((webhook) => present(webhook, request)) })
      }),
  }),
  appRoute({
    method: 'POST',
    path: '/webhooks/incoming',
    role: leastRole('webhooks:write'),
    id: 'createIncomingWebhook',
    tag,
    summary: 'Create an incoming webhook',
    description:
      'The response has the URL and the secret. The secret is returned only once, and again to a repeat with the same Idempotency-Key.',
    secretAnswer: true,
    body: createBody,
    response: { status: 201, schema: withSecret },
    example: { name: 'Website form', target_entity: 'Contact' },
    async handler(request) {
      const { secret: given, source, ...sent } = withKind(request.body)
      const defaults = { ...settingsOf(sent.sender), also_writes: alsoWrites(sent, request.caller) }
      const values = { ...withDefaults(defaults, sent), ...sourceColumns(source, request.deps) }
      request.requireScopes(scopesOf(values))
      const secret = given ?? newSecret(values.verification)
      return request.tenant(async (tx) => {
        await assertWorkflow(tx, values)
        await assertListeners(tx, values)
        assertMapping(values)
        assertDeduplication(values)
        assertInputPaths(values)
        assertInputs(values)
        await assertKey(tx, values)
        await assertPassword(tx, values.source)
        assertSecret(values.verification, secret)
        const webhook = await createIncomingWebhook(tx, values, seal(request.deps.secretsKey, secret))
        return presentWithSecret(webhook, request, secret)
      })
    },
  }),
  ...incomingSenderRoutes,
  appRoute({
    method: 'GET',
    path: '/webhooks/incoming/{webhook_id}',
    role: leastRole('webhooks:read'),
    id: 'getIncomingWebhook',
    tag,
    summary: 'Retrieve an incoming webhook',
    params,
    response: { status: 200, schema: webhookWithProblem },
    handler: (request) =>
      request.tenant(async (tx) => {
        const webhook = await getIncomingWebhook(tx, request.params.webhook_id)
        const problem = (await workflowProblem(tx, webhook)) ?? (await mappingProblem(tx, webhook))
        return { ...present(webhook, request), problem }
      }),
  }),
  appRoute({
    method: 'PATCH',
    path: '/webhooks/incoming/{webhook_id}',
    role: leastRole('webhooks:write'),
    id: 'updateIncomingWebhook',
    tag,
    summary: 'Update an incoming webhook',
    description:
      'Applies to the next request. `sender` also sets what its requests need, unless it is given too. `workflow_id: null` also clears `workflow_inputs`; another workflow is checked against the stored inputs.',
    params,
    body: patchBody,
    example: { rate_limit: 120, ip_whitelist: ['192.0.2.0/24'] },
    response: { status: 200, schema: webhookSchema },
    handler: (request) =>
      request.tenant(async (tx) => {
        const { source, ...body } = withKind(request.body)
        const { webhook_id } = request.params
        const patch = {
          ...(body.workflow_id === null && { workflow_inputs: {} }),
          ...(body.sender && settingsOf(body.sender)),
          ...body,
          ...(source !== undefined &&
            sourceColumns(source, request.deps, (await getIncomingWebhook(tx, webhook_id)).source)),
        }
        const webhook = await updateIncomingWebhook(tx, webhook_id, patch)
        request.requireScopes(scopesOf(webhook))
        // A PATCH can change the target or the rules alone; both are checked together.
        assertMapping(webhook)
        assertDeduplication(webhook)
        assertInputPaths(webhook)
        assertInputs(webhook)
        if (body.deduplication || body.kind) await assertKey(tx, webhook)
        if (patch.verification)
          assertStoredSecret(
            webhook.verification,
            open(request.deps.secretsKey, await sealedSecret(tx, webhook.id)),
          )
        // A workflow that changed later must not block other updates of the webhook.
        if (body.workflow_id !== undefined || body.workflow_inputs !== undefined)
          await assertWorkflow(tx, webhook)
        if (body.listeners) await assertListeners(tx, webhook)
        if (source) await assertPassword(tx, webhook.source)
        return present(webhook, request)
      }),
  }),
  appRoute({
    method: 'DELETE',
    path: '/webhooks/incoming/{webhook_id}',
    role: leastRole('webhooks:write'),
    id: 'deleteIncomingWebhook',
    tag,
    summary: 'Delete an incoming webhook',
    description: 'Deletes the webhook and its log. The created records remain.',
    params,
    response: deletion('incoming_webhook'),
    handler: (request) =>
      request.tenant(async (tx) => {
        await deleteIncomingWebhook(tx, request.params.webhook_id)
        return { object: 'incoming_webhook', id: request.params.webhook_id, deleted: true }
      }),
  }),
  statusRoute('activate', 'Active', 'Activate an incoming webhook'),
  statusRoute('deactivate', 'Inactive', 'Deactivate an incoming webhook'),
  appRoute({
    method: 'POST',
    path: '/webhooks/incoming/{webhook_id}/rotate-secret',
    role: leastRole('webhooks:write'),
    id: 'rotateIncomingWebhookSecret',
    tag,
    summary: 'Rotate the secret of an incoming webhook',
    description: 'The old secret expires at once, or after `overlap_hours`.',
    secretAnswer: true,
    params,
    body: rotateBody,
    example: { overlap_hours: 24 },
    response: { status: 200, schema: withSecret },
    handler(request) {
      return request.tenant(async (tx) => {
        const { webhook_id } = request.params
        const { verification } = await getIncomingWebhook(tx, webhook_id)
        const secret = request.body.secret ?? newSecret(verification)
        assertSecret(verification, secret)
        const sealed = seal(request.deps.secretsKey, secret)
        const webhook = await rotateIncomingSecret(tx, webhook_id, sealed, request.body.overlap_hours)
        return presentWithSecret(webhook, request, secret)
      })
    },
  }),
  appRoute({
    method: 'POST',
    path: '/webhooks/incoming/{webhook_id}/test',
    role: leastRole('webhooks:write'),
    id: 'testIncomingWebhook',
    tag,
    summary: 'Test a payload',
    description: 'Maps and validates a payload without writing, also for an inactive webhook.',
    idempotent: false,
    params,
    body: testBody,
    example: { payload: { email: 'ada@example.com', name: 'Ada Lovelace' } },
    response: { status: 200, schema: testSchema },
    handler: async ({ params, body, caller, deps, tenant }) => {
      const webhook = await tenant((tx) => getIncomingWebhook(tx, params.webhook_id))
      const sample = { content: sampleBody(body.payload), type: body.content_type }
      const { mapped } = await deps.compute.mapBody(caller.organization.id, sample, webhook)
      return tenant((tx) => testMapping(tx, webhook, mapped))
    },
  }),
  ...incomingMappingRoutes,
  ...incomingWebhookLogRoutes,
  ...incomingReplayRoutes,
]

function statusRoute(verb: 'activate' | 'deactivate', status: IncomingWebhook['status'], summary: string) {
  return appRoute({
    method: 'POST',
    path: `/webhooks/incoming/{webhook_id}/${verb}`,
    role: leastRole('webhooks:write'),
    id: `${verb}IncomingWebhook`,
    tag,
    summary,
    params,
    response: { status: 200, schema: webhookSchema },
    handler: (request) =>
      request.tenant(async (tx) =>
        present(await updateIncomingWebhook(tx, request.params.webhook_id, { status }), request),
      ),
  })
}

/** In the form that the verification reads. Base64url characters need no encoding in a URL. */
function newSecret({ type }: Verification): string {
  const bytes = randomBytes(32)
  if (type === 'close') return bytes.toString('hex')
  return type === 'token' ? bytes.toString('base64url') : `whsec_${bytes.toString('base64')}`
}

function presentWithSecret(webhook: IncomingWebhook, request: Presenting, secret: string) {
  const shown = present(webhook, request)
  const url_with_token = `${shown.url}?token=${encodeURIComponent(secret)}`
  return { ...shown, secret, ...(webhook.verification.type === 'token' ? { url_with_token } : {}) }
}

type Presenting = Pick<RouteRequest, 'deps' | 'headers'>

function present(webhook: IncomingWebhook, request: Presenting) {
  const url = `${baseUrl(request.deps, request.headers.host)}/webhooks/incoming/${webhook.id}`
  return { object: 'incoming_webhook', url, ...withTargetEntity(webhook) }
}
