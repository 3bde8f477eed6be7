import type { z } from 'zod'
import { leastRole } from '../../db/model/access/roles.ts'
import { messageId } from '../../db/model/outgoing/message-id.ts'
import { testDelivery } from '../../db/outgoing/actions.ts'
import {
  type Delivery,
  type DeliveryDetails,
  getDelivery,
  listDeliveries,
} from '../../db/outgoing/deliveries.ts'
import { getOutgoingWebhook } from '../../db/outgoing/webhooks.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { EVENTS, exampleEvent } from '../../workflows/shared/events.ts'
import { listEnvelope, offsetOf, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { eventExample } from '../v1/event-examples.ts'
import {
  allDeliveriesQuery,
  deliveryDetailSchema,
  deliveryParams,
  deliveryQuery,
  deliverySchema,
  params,
  testBody,
} from './outgoing-webhook-schemas.ts'

const tag = 'Deliveries'

/** Deliveries of outgoing webhooks; `delivery-actions.ts` has the actions on one. */
export const deliveryRoutes: AppRoute[] = [
  appRoute({
    method: 'POST',
    path: '/webhooks/outgoing/{webhook_id}/test',
    role: leastRole('webhooks:write'),
    id: 'testOutgoingWebhook',
    hidesLinks: true,
    tag,
    summary: 'Send a test event',
    description:
      'Delivers an example event with `"test": true`, also to an inactive webhook, in a single attempt. The delivery shows the outcome.',
    params,
    body: testBody,
    example: { event: 'contact.created' },
    response: { status: 200, schema: deliveryDetailSchema },
    handler: ({ params, body, tenant }) =>
      tenant(async (tx) => {
        const webhook = await getOutgoingWebhook(tx, params.webhook_id)
        const name = body.event ?? exampleEvent(webhook.events[0]!)
        return showDelivery(tx, await testDelivery(tx, webhook.id, { name, data: exampleOf(name) }))
      }),
  }),
  appRoute({
    method: 'GET',
    path: '/webhooks/outgoing/{webhook_id}/deliveries',
    role: leastRole('webhooks:read'),
    id: 'listDeliveries',
    tag,
    summary: 'List deliveries',
    description: 'Lists the deliveries of an outgoing webhook, newest first.',
    params,
    query: deliveryQuery,
    response: { status: 200, schema: listEnvelope(deliverySchema) },
    handler: ({ params, query, tenant }) =>
      tenant(async (tx) => {
        await getOutgoingWebhook(tx, params.webhook_id)
        return pageOf(tx, params.webhook_id, query)
      }),
  }),
  appRoute({
    method: 'GET',
    path: '/deliveries',
    role: leastRole('webhooks:read'),
    id: 'listAllDeliveries',
    tag,
    summary: 'List the deliveries of all webhooks',
    description: 'Lists the deliveries of all outgoing webhooks, newest first.',
    query: allDeliveriesQuery,
    response: { status: 200, schema: listEnvelope(deliverySchema) },
    handler: ({ query: { webhook_id, ...query }, tenant }) => tenant((tx) => pageOf(tx, webhook_id, query)),
  }),
  appRoute({
    method: 'GET',
    path: '/deliveries/{delivery_id}',
    role: leastRole('webhooks:read'),
    id: 'getDelivery',
    hidesLinks: true,
    tag,
    summary: 'Retrieve a delivery',
    description: 'Returns the delivery with its data and attempts.',
    params: deliveryParams,
    response: { status: 200, schema: deliveryDetailSchema },
    handler: ({ params, tenant }) => tenant((tx) => showDelivery(tx, params.delivery_id)),
  }),
]

async function pageOf(tx: Tenant, webhookId: string | undefined, query: z.output<typeof deliveryQuery>) {
  const { limit, cursor, offset: _, ...filter } = query
  const page = await listDeliveries(tx, webhookId, filter, { limit, cursor, offset: offsetOf(query) })
  return presentList({ ...page, data: page.data.map(present) })
}

/** Retrieves a delivery in the shape its routes respond with. Throws not_found. */
export async function showDelivery(tx: Tenant, id: string) {
  const delivery = await getDelivery(tx, id)
  const attempts = delivery.attempts.map(({ duration_ms, ...attempt }) => ({
    ...attempt,
    duration_ms: duration_ms === null ? null : Math.round(duration_ms),
  }))
  return present({ ...delivery, attempts })
}

const present = <T extends Delivery | DeliveryDetails>(delivery: T) => ({
  object: 'delivery' as const,
  ...delivery,
  message_id: messageId(delivery.event_id, delivery.webhook_id),
})

function exampleOf(name: string): Record<string, unknown> {
  const event = EVENTS.find((one) => one.name === name)
  return event ? eventExample(event) : { id: '01890a5d-ac96-774b-bcce-b302099a8057' }
}
