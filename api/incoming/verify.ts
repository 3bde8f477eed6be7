import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Verification } from '../../db/incoming/types.ts'
import { standardKey } from '../http/standard-secret.ts'

/** The accepted clock difference of a signed timestamp, in both directions. Seconds. */
const TOLERANCE = 300

/**
 * Whether the request has the secret (X-Webhook-Secret), or a signature of the raw bytes with one of the secrets, in
 * the format of its sender. Runs in constant time.
 */
export function isVerified(
  verification: Verification,
  headers: IncomingHttpHeaders,
  bytes: Buffer,
  secrets: string[],
  now = Date.now(),
): boolean {
  return secrets.map((secret) => isVerifiedBy(verification, headers, bytes, secret, now)).some(Boolean)
}

function isVerifiedBy(
  verification: Verification,
  headers: IncomingHttpHeaders,
  bytes: Buffer,
  secret: string,
  now: number,
): boolean {
  const header = (name: string) => String(headers[name] ?? '')
  switch (verification.type) {
    case 'secret':
      return equal(header('x-webhook-secret'), secret)
    case 'github':
      return equal(header('x-hub-signature-256'), `sha256=${hmac('sha256', secret, bytes).toString('hex')}`)
    case 'shopify':
      return equal(header('x-shopify-hmac-sha256'), hmac('sha256', secret, bytes).toString('base64'))
    case 'stripe': {
      const parts = header('stripe-signature')
        .split(',')
        .map((part) => part.trim().split('='))
      const time = parts.find(([name]) => name === 't')?.[1] ?? ''
      const expected = hmac('sha256', secret, `${time}.`, bytes).toString('hex')
      const signed = parts.filter(([name, value]) => name === 'v1' && equal(value ?? '', expected)).length > 0
      return signed && isRecent(time, now)
    }
    case 'standard_webhooks': {
      const [id, time] = [header('webhook-id'), header('webhook-timestamp')]
      const key = standardKey(secret)
      if (!key) return false
      const expected = `v1,${hmac('sha256', key, `${id}.${time}.`, bytes).toString('base64')}`
      const signed =
        header('webhook-signature')
          .split(' ')
          .filter((one) => equal(one, expected)).length > 0
      return signed && id !== '' && isRecent(time, now)
    }
    case 'hmac': {
      const { algorithm, encoding, prefix } = verification
      const expected = prefix + hmac(algorithm, secret, bytes).toString(encoding)
      return equal(header(verification.header.toLowerCase()), expected)
    }
  }
}

function hmac(algorithm: string, key: string | Buffer, ...content: (string | Buffer)[]): Buffer {
  const mac = createHmac(algorithm, key)
  for (const part of content) mac.update(part)
  return mac.digest()
}

/** Compares hashes, so that the time reveals neither content nor length. */
function equal(given: string, expected: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(given), hash(expected))
}

const isRecent = (time: string, now: number) => Math.abs(now / 1000 - Number(time || Number.NaN)) <= TOLERANCE
