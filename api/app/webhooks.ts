import { getIncomingWebhook } from '../../db/incoming/webhooks.ts'
import { eventOfDelivery } from '../../db/outgoing/deliveries.ts'
import { getOutgoingWebhook } from '../../db/outgoing/webhooks.ts'
import type { AppRoute, RowScopes } from '../http/route.ts'
import { deliveryRoutes } from './deliveries.ts'
import { deliveryActionRoutes } from './delivery-actions.ts'
import { scopesOfEvents } from './event-scopes.ts'
import { logScopesOf, scopesOf } from './incoming-webhook-rules.ts'
import { incomingWebhookRoutes } from './incoming-webhooks.ts'
import { outgoingReplayRoutes } from './outgoing-replays.ts'
import { outgoingWebhookRoutes } from './outgoing-webhooks.ts'

type Named<Name extends string> = RowScopes<Record<Name, string>>

/**
 * What a webhook or delivery gives access to, by path: the first pattern counts. A secret or a payload of a webhook is
 * worth as much as what its requests do, so every operation on the row needs the same scopes, and a new operation has
 * them by its path.
 */
const ROWS: { path: RegExp; reads?: RowScopes; changes: RowScopes }[] = [
  {
    path: /^\/webhooks\/incoming\/\{webhook_id\}\/logs\b/,
    ...both<'webhook_id'>({
      description: 'that to read its records; without records, workflows:run',
      of: async (tx, { webhook_id }) => logScopesOf(await getIncomingWebhook(tx, webhook_id)),
    }),
  },
  {
    path: /^\/webhooks\/incoming\/\{webhook_id\}/,
    changes: {
      description: 'those to write its records and run its workflow',
      of: async (tx, { webhook_id }) => scopesOf(await getIncomingWebhook(tx, webhook_id)),
    } satisfies Named<'webhook_id'> as RowScopes,
  },
  {
    path: /^\/webhooks\/outgoing\/\{webhook_id\}/,
    changes: {
      description: 'those to read the data of its events',
      of: async (tx, { webhook_id }) => scopesOfEvents((await getOutgoingWebhook(tx, webhook_id)).events),
    } satisfies Named<'webhook_id'> as RowScopes,
  },
  {
    path: /^\/deliveries\/\{delivery_id\}/,
    ...both<'delivery_id'>({
      description: 'those to read the data of its event',
      of: async (tx, { delivery_id }) => {
        const { event, test } = await eventOfDelivery(tx, delivery_id)
        // The data of a test delivery is an example.
        return test ? [] : scopesOfEvents([event])
      },
    }),
  },
]

/** The same scopes for reads and for changes. */
function both<Name extends string>(scopes: Named<Name>) {
  return { reads: scopes as RowScopes, changes: scopes as RowScopes }
}

/** Every operation on webhooks and deliveries. */
export const webhookRoutes: AppRoute[] = [
  ...incomingWebhookRoutes,
  ...outgoingWebhookRoutes,
  ...deliveryRoutes,
  ...deliveryActionRoutes,
  ...outgoingReplayRoutes,
].map((route) => {
  const row = ROWS.find(({ path }) => path.test(route.path))
  const rowScopes = route.method === 'GET' ? row?.reads : row?.changes
  return rowScopes ? { ...route, rowScopes } : route
})
