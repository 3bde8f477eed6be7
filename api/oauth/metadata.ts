import { SCOPES } from '../http/scopes.ts'
import { MCP_PATH } from '../mcp/openapi.ts'
import { resourceOf } from './issuer.ts'

/** The paths of the endpoints. The consent page is one of the console. */
export const AUTHORIZE_PATH = '/oauth/authorize'
export const TOKEN_PATH = '/oauth/token'
export const REGISTER_PATH = '/oauth/register'
export const REVOKE_PATH = '/oauth/revoke'

/** RFC 9728: who issues tokens for /mcp. */
export const resourceMetadata = (issuer: string) => ({
  resource: resourceOf(issuer),
  authorization_servers: [issuer],
  scopes_supported: SCOPES,
  bearer_methods_supported: ['header'],
  resource_name: 'agx',
  resource_documentation: `${issuer}/docs/agents`,
})

/** RFC 8414: what the authorization server does. */
export const serverMetadata = (issuer: string) => ({
  issuer,
  authorization_endpoint: issuer + AUTHORIZE_PATH,
  token_endpoint: issuer + TOKEN_PATH,
  registration_endpoint: issuer + REGISTER_PATH,
  revocation_endpoint: issuer + REVOKE_PATH,
  scopes_supported: SCOPES,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_methods_supported: ['none'],
  revocation_endpoint_auth_methods_supported: ['none'],
  code_challenge_methods_supported: ['S256'],
  authorization_response_iss_parameter_supported: true,
  client_id_metadata_document_supported: true,
  service_documentation: `${issuer}/docs/agents`,
})

const WELL_KNOWN = '/.well-known'

/** The documents by path. Some clients only try the name of OpenID Connect. */
export const METADATA: Readonly<Record<string, (issuer: string) => object>> = {
  [`${WELL_KNOWN}/oauth-protected-resource`]: resourceMetadata,
  [`${WELL_KNOWN}/oauth-protected-resource${MCP_PATH}`]: resourceMetadata,
  [`${WELL_KNOWN}/oauth-authorization-server`]: serverMetadata,
  [`${WELL_KNOWN}/openid-configuration`]: serverMetadata,
}
