import { z } from 'zod'
import { findRegisteredClient, type OAuthClient } from '../../db/access/oauth-clients.ts'
import { isChallenge } from '../../db/model/access/oauth-format.ts'
import { isRegistered } from '../../db/model/access/redirect-uris.ts'
import { ROLE_SCOPES } from '../../db/model/access/roles.ts'
import { allows, type Scope } from '../../db/model/access/scopes.ts'
import { AppError } from '../../db/model/errors.ts'
import { limit } from '../app/limit-attempts.ts'
import { sessionOf } from '../app/session-caller.ts'
import type { RouteRequest } from '../http/route.ts'
import { isDocumentUrl } from './client-documents.ts'
import { issuerOf, resourceOf } from './issuer.ts'
import { askedScopes } from './scopes.ts'

/** Documents of clients that a user can have fetched in five minutes. */
const MAX_FETCHES = 30

/** The only flow: by an authorization code. */
export const RESPONSE_TYPE = 'code'

/** The parameters of the authorization endpoint (RFC 6749, 4.1.1; RFC 7636; RFC 8707). */
export const authorizationParameters = {
  response_type: z.literal(RESPONSE_TYPE).meta({ description: 'The only flow.' }),
  client_id: z
    .string()
    .min(1)
    .max(1_000)
    .meta({ description: 'The registered id, or the URL of the metadata document.' }),
  redirect_uri: z.string().min(1).max(1_000).meta({ description: 'One that the client has registered.' }),
  code_challenge: z
    .string()
    .refine(isChallenge, 'must be the SHA-256 of a verifier in base64url: 43 characters')
    .meta({ description: 'The SHA-256 of the verifier.' }),
  code_challenge_method: z.literal('S256').meta({ description: 'The only method.' }),
  scope: z.string().max(4_000).optional().meta({ description: 'Scopes, separated by blanks.' }),
  state: z.string().max(4_000).optional().meta({ description: 'Returned as it is.' }),
  resource: z.string().max(1_000).optional().meta({ description: 'The address of `/mcp`.' }),
}
const parameters = z.object(authorizationParameters)
export type AuthorizationParameters = z.output<typeof parameters>

/** A request of a client that its member may answer. */
export interface Authorization {
  issuer: string
  client: OAuthClient
  resource: string
  /** What the member may grant: asked for, and within the role. */
  scopes: Scope[]
}

/**
 * Checks a request of a client. Throws invalid_request: the error is shown to the member, who is not sent anywhere by it,
 * since anyone can register an address and lead people to it by a link to this service.
 */
export async function checkAuthorization(
  request: Pick<RouteRequest, 'deps' | 'caller' | 'headers' | 'signal'>,
  given: AuthorizationParameters,
): Promise<Authorization> {
  const { deps, caller, headers, signal } = request
  const session = sessionOf(caller)
  const issuer = issuerOf(deps, headers.host)
  if (!issuer)
    throw refused('client_id', 'the service does not know its address, so assistants cannot be connected', {
      hint: 'the operator of the service names it in PUBLIC_URL',
    })
  const resource = resourceOf(issuer)
  if (given.resource !== undefined && given.resource !== resource)
    throw refused('resource', `the application asks for another service than ${resource}`)
  const client = await findClient(deps, given.client_id, session.user_id, signal)
  if (!isRegistered(given.redirect_uri, client.redirect_uris))
    throw refused('redirect_uri', 'the application wants an answer at an address that it has not registered')
  const role = ROLE_SCOPES[session.role]
  const scopes = askedScopes(given.scope).filter((scope) => allows(role, scope))
  if (scopes.length === 0)
    throw refused('scope', `the application asks for nothing that the role ${session.role} has`)
  return { issuer, client, resource, scopes }
}

async function findClient(
  deps: RouteRequest['deps'],
  id: string,
  userId: string,
  signal: AbortSignal,
): Promise<OAuthClient> {
  if (isDocumentUrl(id)) {
    const known = deps.clientDocuments.known(id)
    if (known) return known
    await limit(deps, { subject: `client documents ${userId}`, limit: MAX_FETCHES })
    return deps.clientDocuments.fetch(id, signal)
  }
  const found = await findRegisteredClient(deps.db.system, id)
  if (found) return found
  throw refused('client_id', 'the application is unknown here, or was not used for a long time', {
    hint: 'remove the connection in the application and add it again: it registers itself anew',
  })
}

const refused = (param: string, message: string, details: { hint?: string } = {}) =>
  new AppError('invalid_request', message, { param, ...details })
