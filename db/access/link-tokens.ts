import { createHash, randomBytes } from 'node:crypto'

/** Tokens of links (invitations, password resets): 256 random bits. Only the hash is stored, under a unique index. */
export function newLinkToken(): { token: string; hash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: hashLinkToken(token) }
}

export const hashLinkToken = (token: string): Buffer => createHash('sha256').update(token).digest()
