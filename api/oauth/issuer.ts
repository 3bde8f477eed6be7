import type { AppDeps } from '../deps.ts'
import { baseUrl } from '../http/base-url.ts'
import { isLocalHost } from '../http/local-host.ts'
import { MCP_PATH } from '../mcp/openapi.ts'

/**
 * The issuer of OAuth: the public address of the service. Without PUBLIC_URL it is the local one of the request; a service
 * behind a proxy that does not know its address has none, and offers no OAuth.
 */
export function issuerOf(deps: Pick<AppDeps, 'config'>, host = ''): string | undefined {
  const { PUBLIC_URL, TRUSTED_PROXIES } = deps.config
  if (PUBLIC_URL) return baseUrl(deps)
  return TRUSTED_PROXIES === 0 && isLocalHost(host) ? baseUrl(deps, host) : undefined
}

/** The resource that tokens are for (RFC 8707). */
export const resourceOf = (issuer: string): string => issuer + MCP_PATH

/** Where clients find what issues tokens for /mcp (RFC 9728). */
export const resourceMetadataUrl = (issuer: string): string =>
  `${issuer}/.well-known/oauth-protected-resource${MCP_PATH}`
