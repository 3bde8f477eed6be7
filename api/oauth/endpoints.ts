import type { IncomingMessage } from 'node:http'
import type Koa from 'koa'
import { revokeToken } from '../../db/access/grant-tokens.ts'
import { registerClient } from '../../db/access/oauth-clients.ts'
import { AppError, type ErrorType } from '../../db/model/errors.ts'
import { HOUR, limit } from '../app/limit-attempts.ts'
import type { AppDeps } from '../deps.ts'
import { parseJson, readBody, requireJson } from '../http/body.ts'
import { clientIp, subnetOf } from '../http/client-ip.ts'
import { createCors } from '../http/cors.ts'
import { answerError, methodNotAllowed } from '../http/errors.ts'
import { readMetadata } from './client-metadata.ts'
import { OAuthError, type OAuthErrorCode } from './errors.ts'
import { MAX_BODY, readFields, required } from './fields.ts'
import { issuerOf } from './issuer.ts'
import { METADATA, REGISTER_PATH, REVOKE_PATH, TOKEN_PATH } from './metadata.ts'
import { answerToken } from './token.ts'

/** Registrations from one address. */
const MAX_REGISTRATIONS_AN_HOUR = 20
const MAX_REGISTRATIONS_A_DAY = 100
const DAY = 24 * HOUR
/** Requests for tokens from one address in five minutes. The services of many people share a few addresses. */
const MAX_TOKEN_REQUESTS = 1_500

export interface OAuthEndpoints {
  /** Whether a path belongs to them. The consent page is one of the console. */
  serves(path: string): boolean
  answer(ctx: Koa.Context, path: string): Promise<void>
}

/**
 * The endpoints of the authorization server for /mcp: small, and strict. Public clients only, codes with PKCE (S256), no
 * other flow. They are open to pages of every origin: they read no cookie.
 *
 * Not oidc-provider, which is well kept and on Koa: its adapter stores opaque payloads by model, each found, then consumed
 * in a second call, so that two processes can both redeem a code or refresh token; its sessions, interactions, keys and
 * cookies would stand beside ours; a grant would know neither organization nor role.
 */
export function createOAuthEndpoints(deps: AppDeps): OAuthEndpoints {
  const answersPreflight = createCors(['*'])
  const { system } = deps.db
  const addressOf = (ctx: Koa.Context) => subnetOf(clientIp(ctx.req, deps.config.TRUSTED_PROXIES))

  const posts: Record<string, (ctx: Koa.Context) => Promise<void>> = {
    [TOKEN_PATH]: async (ctx) => {
      const fields = await fieldsOf(ctx)
      await limit(deps, { subject: `oauth token ${addressOf(ctx)}`, limit: MAX_TOKEN_REQUESTS })
      ctx.body = await answerToken(system, fields)
    },
    // RFC 7009: an unknown token is revoked already.
    [REVOKE_PATH]: async (ctx) => {
      const fields = await fieldsOf(ctx)
      await limit(deps, { subject: `oauth token ${addressOf(ctx)}`, limit: MAX_TOKEN_REQUESTS })
      await revokeToken(system, required(fields, 'token'), required(fields, 'client_id'))
      ctx.status = 200
      ctx.body = {}
    },
    [REGISTER_PATH]: async (ctx) => {
      requireJson(ctx.req)
      const { name, redirect_uris } = readMetadata(
        parseJson(await readBody(ctx.req, MAX_BODY)),
        'An application',
      )
      const subject = `oauth register ${addressOf(ctx)}`
      await limit(deps, { subject, limit: MAX_REGISTRATIONS_AN_HOUR, period: HOUR })
      await limit(deps, { subject: `${subject} in a day`, limit: MAX_REGISTRATIONS_A_DAY, period: DAY })
      const client = await registerClient(system, { name, redirect_uris })
      ctx.status = 201
      ctx.body = {
        client_id: client.id,
        client_id_issued_at: Math.floor(client.created_at.getTime() / 1_000),
        client_name: client.name,
        redirect_uris: client.redirect_uris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      }
    },
  }

  /** Answers a request. Throws OAuthError, AppError. */
  async function answer(ctx: Koa.Context, path: string): Promise<void> {
    const issuer = issuerOf(deps, ctx.req.headers.host)
    if (!issuer) throw notOffered()
    const document = METADATA[path]
    if (document) {
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(ctx, ['GET'])
      ctx.body = document(issuer)
      return
    }
    if (ctx.method !== 'POST') throw methodNotAllowed(ctx, ['POST'])
    await posts[path]!(ctx)
  }

  return {
    serves: (path) => Object.hasOwn(METADATA, path) || Object.hasOwn(posts, path),
    async answer(ctx, path) {
      ctx.state.route = path
      if (answersPreflight(ctx)) {
        ctx.status = 204
        return
      }
      try {
        await answer(ctx, path)
      } catch (error) {
        answerRefusal(ctx, error, deps)
      }
    },
  }
}

const notOffered = () =>
  new AppError('not_found', 'the service does not know its address, so it offers no OAuth', {
    hint: 'the operator of the service names it in PUBLIC_URL',
  })

async function fieldsOf({ req }: Koa.Context): Promise<Map<string, string>> {
  refuseSecret(req)
  const fields = await readFields(req)
  if (fields.has('client_secret')) throw noSecrets()
  return fields
}

function refuseSecret({ headers }: IncomingMessage): void {
  if (headers.authorization !== undefined) throw noSecrets()
}

const noSecrets = () =>
  new OAuthError(
    'invalid_client',
    'clients have no secrets here: send client_id in the body, and nothing else',
  )

const CODES: Partial<Record<ErrorType, OAuthErrorCode>> = {
  rate_limited: 'temporarily_unavailable',
  unavailable: 'temporarily_unavailable',
  internal_error: 'server_error',
}

/** The status and headers of /v1; the body in the form of OAuth. */
function answerRefusal(ctx: Koa.Context, error: unknown, { log }: AppDeps): void {
  if (error instanceof OAuthError) {
    ctx.status = error.status
    ctx.body = { error: error.code, error_description: error.message }
    return
  }
  answerError(ctx, error, ctx.state.requestId, log)
  const { error: shown } = ctx.body as { error: { type: ErrorType; message: string; hint?: string } }
  const error_description = [shown.message, shown.hint].filter(Boolean).join(': ')
  ctx.body = { error: CODES[shown.type] ?? 'invalid_request', error_description }
}
