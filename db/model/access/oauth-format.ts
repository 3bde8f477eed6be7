import { createHash, randomBytes } from 'node:crypto'

/**
 * The secrets of OAuth: a prefix that tells them apart, and 256 random bits. Only their SHA-256 is stored.
 * `agx_` is the prefix of API keys.
 */
export const ACCESS_PREFIX = 'agxa_'
const REFRESH_PREFIX = 'agxr_'
const CODE_PREFIX = 'agxc_'

const secret = (prefix: string) => prefix + randomBytes(32).toString('base64url')

export const newAccessToken = () => secret(ACCESS_PREFIX)
export const newRefreshToken = () => secret(REFRESH_PREFIX)
export const newCode = () => secret(CODE_PREFIX)
/** The id of a client that registers itself. It is no secret: the client is known by its redirect URIs. */
export const newClientId = () => `client_${randomBytes(16).toString('base64url')}`

export const hashSecret = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The challenge of PKCE (RFC 7636, S256) for a verifier. */
export const challengeOf = (verifier: string): string =>
  createHash('sha256').update(verifier).digest('base64url')

/** What a challenge of S256 looks like: 32 bytes in base64url. */
export const isChallenge = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)

/** What RFC 7636 allows as a verifier. */
export const isVerifier = (text: string): boolean => /^[A-Za-z0-9._~-]{43,128}$/.test(text)
