import { createHash, randomBytes } from 'node:crypto'
import type { Knex } from 'knex'

/**
 * Tokens of links (invitations, password resets, sign-ups): 256 random bits. Only the hash is stored, under a unique
 * index.
 */
export function newLinkToken(): { token: string; hash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: hashLinkToken(token) }
}

const hashLinkToken = (token: string): Buffer => createHash('sha256').update(token).digest()

/** The path of each link, below the public URL. A browser gets a form there, which posts to the same path. */
export const LINK_PATHS = {
  invitation: (token: string) => `/app/invitations/${token}/accept`,
  password_reset: (token: string) => `/app/password-resets/${token}`,
  sign_up: (token: string) => `/app/signup/${token}`,
}
export type LinkKind = keyof typeof LINK_PATHS

const TABLES: Record<LinkKind, string> = {
  invitation: 'invitations',
  password_reset: 'password_resets',
  sign_up: 'sign_ups',
}

/** The row of a link's token, unless it has expired. */
export const usableLink = (system: Knex, kind: LinkKind, token: string): Knex.QueryBuilder =>
  system(TABLES[kind])
    .where({ token_hash: hashLinkToken(token) })
    .whereRaw('expires_at > now()')
