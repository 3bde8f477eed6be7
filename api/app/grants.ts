import { z } from 'zod'
import { createGrant, listGrants, revokeGrant } from '../../db/access/grants.ts'
import { keepClient } from '../../db/access/oauth-clients.ts'
import { receiverOf, withParameters } from '../../db/model/access/redirect-uris.ts'
import { includesRole, MEMBER_ROLES } from '../../db/model/access/roles.ts'
import { invalid } from '../../db/model/errors.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { SCOPES } from '../http/scopes.ts'
import { authorizationParameters, checkAuthorization, RESPONSE_TYPE } from '../oauth/authorization.ts'
import { isDocumentUrl } from '../oauth/client-documents.ts'
import { sessionOf } from './session-caller.ts'

const grantSchema = z
  .object({
    object: z.literal('grant'),
    id: z.uuid(),
    client_id: z.string(),
    client_name: z.string(),
    user: z.object({ id: z.uuid(), name: z.string() }),
    scopes: z.array(z.string()),
    last_used_at: z.iso.datetime().nullable(),
    revoked_at: z.iso.datetime().nullable(),
    expires_at: z.iso.datetime(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Grant' })

const requestSchema = z
  .object({
    object: z.literal('authorization_request'),
    client: z.object({
      id: z.string(),
      name: z.string().meta({ description: 'What it calls itself.' }),
      host: z.string().nullable().meta({ description: 'The proven host of its document.' }),
    }),
    receiver: z
      .object({ host: z.string(), is_local: z.boolean() })
      .meta({ description: 'Who gets the code; `is_local`: a program on the machine of the user.' }),
    role: z.enum(MEMBER_ROLES),
    scopes: z.array(z.enum(SCOPES)).meta({ description: 'Asked for, and within the role.' }),
    denied_to: z.string().meta({ description: 'Where to go to refuse.' }),
  })
  .meta({ id: 'AuthorizationRequest' })

/** Connections of assistants by OAuth: beside the keys. Admins see and end those of all members, others their own. */
export const grantRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/authorization',
    role: 'member',
    id: 'getAuthorization',
    tag: 'Grants',
    summary: 'Check a request of an assistant',
    description: 'Takes the parameters of the authorization endpoint of OAuth, and changes nothing.',
    query: z.strictObject(authorizationParameters),
    response: { status: 200, schema: requestSchema },
    async handler(request) {
      const { query } = request
      const { client, issuer, scopes } = await checkAuthorization(request, query)
      const { host, isLocal } = receiverOf(query.redirect_uri)
      return {
        object: 'authorization_request',
        client: {
          id: client.id,
          name: client.name,
          host: isDocumentUrl(client.id) ? new URL(client.id).host : null,
        },
        receiver: { host, is_local: isLocal },
        role: sessionOf(request.caller).role,
        scopes,
        denied_to: withParameters(query.redirect_uri, {
          error: 'access_denied',
          state: query.state,
          iss: issuer,
        }),
      }
    },
  }),
  appRoute({
    method: 'POST',
    path: '/grants',
    role: 'member',
    id: 'createGrant',
    tag: 'Grants',
    summary: 'Connect an assistant',
    description:
      'Grants `scopes` to the client, in the organization of the session. `redirect_to` has the code, which works once and for a minute.',
    secretAnswer: true,
    body: z
      .strictObject({ ...authorizationParameters, scopes: z.array(z.enum(SCOPES)).min(1) })
      .meta({ id: 'GrantCreate' }),
    example: {
      response_type: RESPONSE_TYPE,
      client_id: 'client_0lq0kZ3rB1mX5n2s7c4v9w',
      redirect_uri: 'https://assistant.example.com/callback',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
      state: 'af0ifjsldkj',
      scopes: ['contacts:read'],
    },
    response: {
      status: 201,
      schema: z
        .object({ object: z.literal('grant'), id: z.uuid(), redirect_to: z.string() })
        .meta({ id: 'NewGrant' }),
    },
    async handler(request) {
      const { body, caller, deps, tenant } = request
      const { client, issuer, resource, scopes: offered } = await checkAuthorization(request, body)
      const beyond = body.scopes.findIndex((scope) => !offered.includes(scope))
      if (beyond >= 0)
        throw invalid([
          {
            loc: ['body', 'scopes', beyond],
            msg: 'was not asked for, or is beyond the role',
            type: 'scope_not_offered',
          },
        ])
      const { id, code } = await tenant((tx) =>
        createGrant(tx, sessionOf(caller).user_id, {
          clientId: client.id,
          clientName: client.name,
          redirectUri: body.redirect_uri,
          challenge: body.code_challenge,
          scopes: [...new Set(body.scopes)],
          resource,
        }),
      )
      await keepClient(deps.db.system, client.id)
      const redirect_to = withParameters(body.redirect_uri, { code, state: body.state, iss: issuer })
      return { object: 'grant', id, redirect_to }
    },
  }),
  appRoute({
    method: 'GET',
    path: '/grants',
    role: 'member',
    id: 'listGrants',
    tag: 'Grants',
    summary: 'List connected assistants',
    description: 'Newest first; for admins those of all members. Ended ones are shown for 30 days.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(grantSchema) },
    handler: ({ query, caller, tenant }) =>
      tenant(async (tx) =>
        presentList(await listGrants(tx, ownOnly(caller), { ...query, offset: offsetOf(query) })),
      ),
  }),
  appRoute({
    method: 'DELETE',
    path: '/grants/{grant_id}',
    role: 'member',
    id: 'revokeGrant',
    tag: 'Grants',
    summary: 'Disconnect an assistant',
    description: 'Its tokens end at once.',
    params: z.object({ grant_id: z.uuid() }),
    response: { status: 200, schema: grantSchema },
    handler: ({ params, caller, tenant }) =>
      tenant((tx) => revokeGrant(tx, params.grant_id, ownOnly(caller))),
  }),
]

/** The member whose grants alone the caller manages; undefined: those of all. */
function ownOnly(caller: Parameters<typeof sessionOf>[0]): string | undefined {
  const { role, user_id } = sessionOf(caller)
  return includesRole(role, 'admin') ? undefined : user_id
}
