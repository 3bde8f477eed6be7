import { z } from 'zod'
import type { OAuthClient } from '../../db/access/oauth-clients.ts'
import { flawOfRedirectUri } from '../../db/model/access/redirect-uris.ts'
import { OAuthError } from './errors.ts'

const MAX_REDIRECT_URIS = 20
/** Characters of all of them together: anybody may have them stored. */
const MAX_REDIRECT_TEXT = 4_096
const MAX_NAME = 100

/** What is read of the metadata of a client (RFC 7591); other members have no effect, as the standard wants. */
const metadata = z.object({
  client_name: z.string().optional(),
  redirect_uris: z
    .array(z.string())
    .min(1)
    .max(MAX_REDIRECT_URIS)
    .refine((uris) => uris.join('').length <= MAX_REDIRECT_TEXT, {
      message: `they have more than ${MAX_REDIRECT_TEXT} characters together`,
    }),
  token_endpoint_auth_method: z.string().optional(),
  grant_types: z.array(z.string()).optional(),
  response_types: z.array(z.string()).optional(),
})

export interface ClientMetadata extends Omit<OAuthClient, 'id'> {
  /** How it would authenticate itself at the token endpoint. */
  auth: string | undefined
}

/**
 * The client that metadata describes, of a registration or of a document. Throws OAuthError for metadata that cannot be
 * used. `fallback`: its name, if it has none.
 */
export function readMetadata(given: unknown, fallback: string): ClientMetadata {
  const parsed = metadata.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const path = issue!.path.join('.')
    const code = path.startsWith('redirect_uris') ? 'invalid_redirect_uri' : 'invalid_client_metadata'
    throw new OAuthError(code, path ? `${path}: ${issue!.message}` : 'the metadata must be a JSON object')
  }
  const { client_name, redirect_uris, grant_types, response_types, token_endpoint_auth_method } = parsed.data
  for (const [i, uri] of redirect_uris.entries()) {
    const flaw = flawOfRedirectUri(uri)
    if (flaw) throw new OAuthError('invalid_redirect_uri', `redirect_uris.${i} ${flaw}`)
  }
  if (grant_types && !grant_types.includes('authorization_code'))
    throw new OAuthError('invalid_client_metadata', 'grant_types must include authorization_code')
  if (response_types && !response_types.includes('code'))
    throw new OAuthError('invalid_client_metadata', 'response_types must include code')
  return { name: shownName(client_name) || fallback, redirect_uris, auth: token_endpoint_auth_method }
}

/** The name in one line. Invisible and direction characters could make it look like another one. */
const shownName = (name = ''): string =>
  [...name.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()].slice(0, MAX_NAME).join('')
