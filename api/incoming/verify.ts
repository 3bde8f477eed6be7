import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Verification } from '../../db/model/incoming/types.ts'
import { standardKey } from '../../workflows/shared/webhook-signature.ts'

/** The accepted clock difference of a signed timestamp, in both directions. Seconds. */
const TOLERANCE = 300

/** What a verification reads of a request, besides its body. */
export interface SignedRequest {
  method: string
  headers: IncomingHttpHeaders
  /** The URL that the sender called. */
  url: string
  /** The token of the URL: `?token=` or the last segment of the path. */
  token?: string | undefined
}

/** `stale`: the signature is right, but its time is not. */
export type Verdict = 'verified' | 'stale' | 'wrong' | 'missing'

const BEST: Verdict[] = ['verified', 'stale', 'wrong', 'missing']

/**
 * Whether the request has the secret, or a signature of the raw bytes with one of the secrets, in the format of its
 * sender. Runs in constant time.
 */
export function verify(
  verification: Verification,
  request: SignedRequest,
  bytes: Buffer,
  secrets: string[],
  now = Date.now(),
): Verdict {
  const verdicts = secrets.map((secret) => verifyBy(verification, request, bytes, secret, now))
  return BEST.find((verdict) => verdicts.includes(verdict)) ?? 'missing'
}

function verifyBy(
  verification: Verification,
  request: SignedRequest,
  bytes: Buffer,
  secret: string,
  now: number,
): Verdict {
  const header = (name: string) => String(request.headers[name] ?? '')
  const hex = (...content: (string | Buffer)[]) => hmac('sha256', secret, ...content).toString('hex')
  switch (verification.type) {
    case 'secret':
      return one(header('x-webhook-secret'), secret)
    case 'token':
      return one(request.token ?? '', secret)
    case 'basic': {
      const { username } = verification
      const expected = Buffer.from(`${username}:${secret}`).toString('base64')
      return one(header('authorization').replace(/^basic +/i, ''), expected)
    }
    // Meta signs as GitHub does.
    case 'github':
    case 'meta':
      return one(header('x-hub-signature-256'), `sha256=${hex(bytes)}`)
    case 'shopify':
      return one(header('x-shopify-hmac-sha256'), hmac('sha256', secret, bytes).toString('base64'))
    case 'stripe':
    case 'calendly': {
      const name = verification.type === 'stripe' ? 'stripe-signature' : 'calendly-webhook-signature'
      const parts = header(name)
        .split(',')
        .map((part) => part.trim().split('='))
      const time = parts.find(([part]) => part === 't')?.[1] ?? ''
      const signatures = parts.filter(([part]) => part === 'v1').map(([, value]) => value ?? '')
      return timed(any(signatures, hex(`${time}.`, bytes)), Number(time || Number.NaN), now)
    }
    case 'slack': {
      const time = header('x-slack-request-timestamp')
      const verdict = one(header('x-slack-signature'), `v0=${hex(`v0:${time}:`, bytes)}`)
      return timed(verdict, Number(time || Number.NaN), now)
    }
    case 'hubspot': {
      const time = header('x-hubspot-request-timestamp')
      const content = [request.method, decodedUrl(request.url), bytes, time]
      const expected = hmac('sha256', secret, ...content).toString('base64')
      return timed(one(header('x-hubspot-signature-v3'), expected), Number(time || Number.NaN) / 1000, now)
    }
    case 'standard_webhooks': {
      const [id, time] = [header('webhook-id'), header('webhook-timestamp')]
      const key = standardKey(secret)
      if (!key || id === '') return 'missing'
      const expected = `v1,${hmac('sha256', key, `${id}.${time}.`, bytes).toString('base64')}`
      const verdict = any(header('webhook-signature').split(' '), expected)
      return timed(verdict, Number(time || Number.NaN), now)
    }
    case 'hmac': {
      const { algorithm, encoding, prefix } = verification
      const expected = prefix + hmac(algorithm, secret, bytes).toString(encoding)
      return one(header(verification.header.toLowerCase()), expected)
    }
  }
}

const one = (given: string, expected: string) => any([given], expected)

function any(given: string[], expected: string): Verdict {
  const sent = given.filter((text) => text !== '')
  if (sent.length === 0) return 'missing'
  return sent.filter((text) => equal(text, expected)).length > 0 ? 'verified' : 'wrong'
}

/** @param seconds the signed time. */
function timed(verdict: Verdict, seconds: number, now: number): Verdict {
  const isRecent = Math.abs(now / 1000 - seconds) <= TOLERANCE
  return verdict === 'verified' && !isRecent ? 'stale' : verdict
}

/** HubSpot signs the URL with these characters decoded. */
const decodedUrl = (url: string) =>
  url.replace(/%(3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, (encoded) => decodeURIComponent(encoded))

function hmac(algorithm: string, key: string | Buffer, ...content: (string | Buffer)[]): Buffer {
  const mac = createHmac(algorithm, key)
  for (const part of content) mac.update(part)
  return mac.digest()
}

/** Compares hashes, so that the time reveals neither content nor length. */
export function equal(given: string, expected: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(given), hash(expected))
}
