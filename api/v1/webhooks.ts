import { leastRole } from '../../db/model/access/roles.ts'
import { webhookRoutes as operations } from '../app/webhooks.ts'
import { type AppRoute, type Route, route } from '../http/route.ts'
import type { Scope } from '../http/scopes.ts'

/**
 * The webhook settings for keys: the operations of /app with the same handlers, so that scripts and platforms such as
 * Zapier and n8n can subscribe to events (REST hooks).
 */
export const webhookRoutes: Route[] = operations.map(forKeys)

/**
 * Reading needs `webhooks:read`, every other operation `webhooks:write`. Throws if the session role of the operation
 * does not match that.
 */
function forKeys({ role, id, ...operation }: AppRoute): Route {
  const scope: Scope = operation.method === 'GET' ? 'webhooks:read' : 'webhooks:write'
  if (role !== leastRole(scope)) throw new Error(`${id} requires the role ${role}, not the one of ${scope}`)
  return route({
    ...operation,
    scope,
    id: `${id}WithKey`,
    exampleOf: id,
  })
}
