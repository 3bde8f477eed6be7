import { isIP } from 'node:net'
import type Koa from 'koa'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'

/** Names that the public DNS does not serve: of one label, and of RFC 6761, RFC 6762, RFC 8375 and `.internal`. */
const LOCAL_NAME = /^[^.]+$|\.(localhost|local|home\.arpa|internal|test)$/

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
  if (TRUSTED_PROXIES === 0 && !isLocal(host) && host !== (own && new URL(own).host))
    throw new AppError('insufficient_scope', `the service is not known as ${host.slice(0, 100)}`, {
      hint: 'the operator of the service names its address in PUBLIC_URL',
    })
  if (origin === undefined || CORS_ORIGINS.includes('*') || CORS_ORIGINS.includes(origin)) return
  if (origin === own || origin === `http://${host}` || origin === `https://${host}`) return
  throw new AppError('insufficient_scope', 'requests of pages of this origin are not accepted', {
    hint: 'the operator of the service allows origins with CORS_ORIGINS',
  })
}

/** DNS cannot rebind an IP address. `URL.canParse` is false for a text that is not a host. */
function isLocal(host: string): boolean {
  if (!URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || LOCAL_NAME.test(hostname)
}
