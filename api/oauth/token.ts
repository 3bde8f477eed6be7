import {
  ACCESS_SECONDS,
  exchangeCode,
  type Issued,
  type Refusal,
  refreshTokens,
} from '../../db/access/grant-tokens.ts'
import { challengeOf, isVerifier } from '../../db/model/access/oauth-format.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import { OAuthError, type OAuthErrorCode } from './errors.ts'
import { required } from './fields.ts'
import { knownScopes } from './scopes.ts'

/** Answers a request to the token endpoint (RFC 6749, 5.1). Throws OAuthError. */
export async function answerToken(system: System, fields: Map<string, string>): Promise<object> {
  const issued = await issuedFor(system, fields)
  if ('refused' in issued) throw new OAuthError(...REFUSALS[issued.refused])
  const { access_token, refresh_token, scopes } = issued.tokens
  return {
    access_token,
    token_type: 'Bearer',
    expires_in: ACCESS_SECONDS,
    refresh_token,
    scope: scopes.join(' '),
  }
}

function issuedFor(system: System, fields: Map<string, string>): Promise<Issued> {
  const type = required(fields, 'grant_type')
  const clientId = required(fields, 'client_id')
  const resource = fields.get('resource')
  if (type === 'authorization_code') {
    const verifier = required(fields, 'code_verifier')
    if (!isVerifier(verifier))
      throw new OAuthError('invalid_grant', 'code_verifier has not the form of RFC 7636')
    const redirectUri = required(fields, 'redirect_uri')
    const code = required(fields, 'code')
    return exchangeCode(system, { code, clientId, redirectUri, challenge: challengeOf(verifier), resource })
  }
  if (type === 'refresh_token') {
    const scope = fields.get('scope')
    const scopes = scope === undefined ? undefined : knownScopes(scope)
    const refreshToken = required(fields, 'refresh_token')
    return refreshTokens(system, { refreshToken, clientId, resource, scopes })
  }
  throw new OAuthError('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token')
}

/** An unknown token, one of another client, and an ended grant are indistinguishable. */
const REFUSALS: Record<Refusal, [OAuthErrorCode, string]> = {
  unknown: [
    'invalid_grant',
    'the code or refresh token is unknown, expired or revoked, or belongs to another client, redirect_uri or code_verifier',
  ],
  reused: [
    'invalid_grant',
    'the code or refresh token was used before, so the grant is revoked: ask the person again',
  ],
  wrong_resource: ['invalid_target', 'the grant is for another resource'],
  wrong_scope: ['invalid_scope', 'the grant has not all of these scopes'],
}
