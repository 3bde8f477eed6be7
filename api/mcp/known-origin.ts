import type Koa from 'koa'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'
import { isLocalHost } from '../http/local-host.ts'

/**
 * Refuses requests of agents that a page of another site makes a browser send. `Origin` must be one that may read
 * answers, or that of the request itself; clients that are no browsers send none. `Host` must not be a foreign name,
 * which a page could have pointed at a service in the user's network (DNS rebinding). A proxy decides itself which hosts
 * it serves.
 */
export function requireKnownOrigin({ req: { headers } }: Koa.Context, { config }: AppDeps): void {
  const { CORS_ORIGINS, PUBLIC_URL, TRUSTED_PROXIES } = config
  const { origin, host = '' } = headers
  const own = PUBLIC_URL && new URL(PUBLIC_URL).origin
  // DNS cannot rebind an IP address.
  if (TRUSTED_PROXIES === 0 && !isLocalHost(host) && host !== (own && new URL(own).host))
    throw new AppError('insufficient_scope', `the service is not known as ${host.slice(0, 100)}`, {
      hint: 'the operator of the service names its address in PUBLIC_URL',
    })
  if (origin === undefined || CORS_ORIGINS.includes('*') || CORS_ORIGINS.includes(origin)) return
  if (origin === own || origin === `http://${host}` || origin === `https://${host}`) return
  throw new AppError('insufficient_scope', 'requests of pages of this origin are not accepted', {
    hint: 'the operator of the service allows origins with CORS_ORIGINS',
  })
}
