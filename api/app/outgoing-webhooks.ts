import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { leastRole } from '../../db/model/access/roles.ts'
import {
  createOutgoingWebhook,
  deleteOutgoingWebhook,
  getOutgoingWebhook,
  listOutgoingWebhooks,
  type OutgoingWebhook,
  rotateOutgoingSecret,
  setOutgoingStatus,
  updateOutgoingWebhook,
} from '../../db/outgoing/webhooks.ts'
import { type SecretsKey, seal } from '../../db/process/seal.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { allows, type Caller } from '../http/scopes.ts'
import { assertAllowedUrl, urlIssues } from './endpoint-url.ts'
import { NEEDS_EVENTS, scopesOfEvents } from './event-scopes.ts'
import {
  createBody,
  params,
  patchBody,
  rotateBody,
  webhookSchema,
  withSecret,
} from './outgoing-webhook-schemas.ts'

const tag = 'Outgoing webhooks'

export const outgoingWebhookRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/webhooks/outgoing',
    role: leastRole('webhooks:read'),
    id: 'listOutgoingWebhooks',
    tag,
    summary: 'List outgoing webhooks',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(webhookSchema) },
    handler: ({ query, caller, tenant }) =>
      tenant(async (tx) => {
        const page = await listOutgoingWebhooks(tx, { ...query, offset: offsetOf(query) })
        return presentList({ ...page, data: page.data.map((webhook) => presentTo(caller, webhook)) })
      }),
  }),
  appRoute({
    method: 'POST',
    path: '/webhooks/outgoing',
    role: leastRole('webhooks:write'),
    id: 'createOutgoingWebhook',
    tag,
    summary: 'Create an outgoing webhook',
    description: `The response has the secret that signs deliveries. It is returned only once, and again to a repeat with the same Idempotency-Key. ${NEEDS_EVENTS}`,
    secretAnswer: true,
    body: createBody,
    response: { status: 201, schema: withSecret },
    example: { name: 'Billing', url: 'https://example.com/hooks', events: ['contact.created'] },
    otherIssues: async ({ deps }, { body }) => urlIssues(body, deps.config),
    async handler({ body, deps, tenant, requireScopes }) {
      const { secret = newSecret(), headers, ...values } = body
      requireScopes(scopesOfEvents(values.events))
      assertAllowedUrl(values.url, deps.config)
      const sealed = seal(deps.secretsKey, secret)
      const webhook = await tenant((tx) =>
        createOutgoingWebhook(tx, { ...values, ...sealHeaders(deps.secretsKey, headers) }, sealed),
      )
      return { ...present(webhook), secret }
    },
  }),
  appRoute({
    method: 'GET',
    path: '/webhooks/outgoing/{webhook_id}',
    role: leastRole('webhooks:read'),
    id: 'getOutgoingWebhook',
    tag,
    summary: 'Retrieve an outgoing webhook',
    params,
    response: { status: 200, schema: webhookSchema },
    handler: ({ params, caller, tenant }) =>
      tenant(async (tx) => presentTo(caller, await getOutgoingWebhook(tx, params.webhook_id))),
  }),
  appRoute({
    method: 'PATCH',
    path: '/webhooks/outgoing/{webhook_id}',
    role: leastRole('webhooks:write'),
    id: 'updateOutgoingWebhook',
    tag,
    summary: 'Update an outgoing webhook',
    description: `Applies to the next attempt, also of open deliveries. Deliveries that wait for a retry follow a changed
\`retry_schedule\` at once, and fail if it has no further attempt; a time that was set by a user or by the receiver's
Retry-After is kept. \`headers\` replaces all headers; another server in \`url\` needs them again.`,
    params,
    body: patchBody,
    example: { events: ['contact.*', 'deal.won'], concurrency: 2 },
    otherIssues: async ({ deps }, { body }) => urlIssues(body, deps.config),
    response: { status: 200, schema: webhookSchema },
    handler({ params, body, deps, tenant, requireScopes }) {
      const { status, headers, ...values } = body
      if (values.url !== undefined) assertAllowedUrl(values.url, deps.config)
      const sealed = headers ? sealHeaders(deps.secretsKey, headers) : {}
      return tenant(async (tx) => {
        requireScopes(scopesOfEvents(values.events ?? []))
        const updated = await updateOutgoingWebhook(tx, params.webhook_id, { ...values, ...sealed })
        return present(status ? await setOutgoingStatus(tx, params.webhook_id, status) : updated)
      })
    },
  }),
  appRoute({
    method: 'DELETE',
    path: '/webhooks/outgoing/{webhook_id}',
    role: leastRole('webhooks:write'),
    id: 'deleteOutgoingWebhook',
    tag,
    summary: 'Delete an outgoing webhook',
    description: 'Deletes the webhook and its deliveries, including open ones.',
    params,
    response: deletion('outgoing_webhook'),
    handler: ({ params, tenant }) =>
      tenant(async (tx) => {
        await deleteOutgoingWebhook(tx, params.webhook_id)
        return { object: 'outgoing_webhook', id: params.webhook_id, deleted: true }
      }),
  }),
  statusRoute('activate', 'Active', 'Activate an outgoing webhook', 'Sends the held deliveries.'),
  statusRoute('deactivate', 'Inactive', 'Deactivate an outgoing webhook', 'Holds open and new deliveries.'),
  appRoute({
    method: 'POST',
    path: '/webhooks/outgoing/{webhook_id}/rotate-secret',
    role: leastRole('webhooks:write'),
    id: 'rotateOutgoingWebhookSecret',
    tag,
    summary: 'Rotate the secret of an outgoing webhook',
    description: 'Deliveries are signed with both secrets for `overlap_hours`.',
    secretAnswer: true,
    params,
    body: rotateBody,
    example: { overlap_hours: 48 },
    response: { status: 200, schema: withSecret },
    async handler({ params, body, deps, tenant }) {
      const { secret = newSecret(), overlap_hours } = body
      const sealed = seal(deps.secretsKey, secret)
      const webhook = await tenant((tx) => rotateOutgoingSecret(tx, params.webhook_id, sealed, overlap_hours))
      return { ...present(webhook), secret }
    },
  }),
]

function statusRoute(
  verb: 'activate' | 'deactivate',
  status: OutgoingWebhook['status'],
  summary: string,
  description: string,
) {
  return appRoute({
    method: 'POST',
    path: `/webhooks/outgoing/{webhook_id}/${verb}`,
    role: leastRole('webhooks:write'),
    id: `${verb}OutgoingWebhook`,
    tag,
    summary,
    description,
    params,
    response: { status: 200, schema: webhookSchema },
    handler: ({ params, tenant }) =>
      tenant(async (tx) => present(await setOutgoingStatus(tx, params.webhook_id, status))),
  })
}

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`

/** Header values can be secrets, so all values are sealed. */
function sealHeaders(key: SecretsKey, headers: Record<string, string>) {
  const header_names = Object.keys(headers)
  return { header_names, headers_sealed: header_names.length ? seal(key, JSON.stringify(headers)) : null }
}

/** URLs can contain a token in the path (Slack) or the query: a caller without webhooks:write sees only the origin. */
function presentTo({ scopes }: Caller, webhook: OutgoingWebhook) {
  const shown = present(webhook)
  return allows(scopes, 'webhooks:write') ? shown : { ...shown, url: `${new URL(webhook.url).origin}/…` }
}

function present({ previous_secret_expires_at: end, ...webhook }: OutgoingWebhook) {
  const previous_secret_expires_at = end && end.getTime() > Date.now() ? end : null
  return { object: 'outgoing_webhook' as const, ...webhook, previous_secret_expires_at }
}
