import type { Verification } from '../../db/model/incoming/types.ts'
import { equal, hmac, SCHEMES, type Signed, type SignedRequest } from './signatures.ts'

/** The accepted difference between a signed time and now, in both directions, unless `oldest` allows more. Seconds. */
const TOLERANCE = 300

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
  const signed = signedBy(verification, request, bytes, secret)
  return signed ? timed(any(signed.given, signed.expected), signed, now) : 'missing'
}

function signedBy(
  verification: Verification,
  request: SignedRequest,
  bytes: Buffer,
  secret: string,
): Signed | undefined {
  switch (verification.type) {
    case 'basic': {
      const expected = Buffer.from(`${verification.username}:${secret}`).toString('base64')
      return { given: [String(request.headers.authorization ?? '').replace(/^basic +/i, '')], expected }
    }
    case 'hmac': {
      const { algorithm, encoding, prefix, header } = verification
      const expected = prefix + hmac(algorithm, secret, bytes).toString(encoding)
      return { given: [String(request.headers[header.toLowerCase()] ?? '')], expected }
    }
    default:
      return SCHEMES[verification.type](request, bytes, secret)
  }
}

function any(given: string[], expected: Signed['expected']): Verdict {
  const sent = given.filter((text) => text !== '')
  if (sent.length === 0) return 'missing'
  const isRight = typeof expected === 'string' ? (text: string) => equal(text, expected) : expected
  return sent.filter(isRight).length > 0 ? 'verified' : 'wrong'
}

function timed(verdict: Verdict, { seconds, oldest = TOLERANCE }: Signed, now: number): Verdict {
  if (seconds === undefined) return verdict
  const age = now / 1000 - seconds
  const isRecent = age >= -TOLERANCE && age <= oldest
  return verdict === 'verified' && !isRecent ? 'stale' : verdict
}
