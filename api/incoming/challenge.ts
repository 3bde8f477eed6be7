import type { IncomingHttpHeaders } from 'node:http'
import type { Receiver } from '../../db/incoming/receiving.ts'
import { asana } from '../../db/model/incoming/mapping/senders/asana.ts'
import { idOfSender } from '../../db/model/incoming/mapping/senders/index.ts'
import type { Payload } from '../../db/model/incoming/parse-body.ts'
import type { Verification } from '../../db/model/incoming/types.ts'
import { UUID } from '../../workflows/shared/uuid.ts'
import type { Target } from './request-url.ts'
import { equal, hmac } from './signatures.ts'

/** What a sender asks with GET when the webhook is set up, and whether it has the secret. */
export interface Challenge {
  /** The name of the challenge, for the log. */
  kind: string
  /** `open`: anybody may ask it, and the answer proves that it is ours. */
  verified: boolean | 'open'
  /** The text, or the JSON, to answer; without them the answer is that to a request that writes nothing. */
  text?: string
  json?: object
}

/** Longer texts are no challenges. */
const MAX_TEXT = 500

/**
 * The challenge of a GET request: Meta sends the secret as its verify token and a text to repeat; LinkedIn, every two
 * hours, a code to sign; Mailchimp and others look whether the URL, with its token, exists. Undefined for any other GET
 * request. `secrets`: the newest first.
 */
export function challengeOf(
  { query, token }: Target,
  { verification }: Receiver,
  secrets: string[],
): Challenge | undefined {
  const has = (given: string) => secrets.filter((secret) => equal(given, secret)).length > 0
  const text = query.get('hub.challenge')
  if (text !== null && text.length <= MAX_TEXT && query.get('hub.mode') === 'subscribe')
    return { kind: 'challenge', verified: has(query.get('hub.verify_token') ?? ''), text }
  const code = query.get('challengeCode')
  if (verification.type === 'linkedin' && code !== null && UUID.test(code))
    return { kind: 'challenge', verified: 'open', json: signedCode(code, secrets[0]!) }
  if (verification.type === 'token') return { kind: 'check of the URL', verified: has(token ?? '') }
  return undefined
}

/**
 * Only a UUID is signed, as LinkedIn sends it: the key is that of the notifications, so whoever had any text signed could
 * forge one. https://learn.microsoft.com/linkedin/shared/api-guide/webhook-validation
 */
const signedCode = (challengeCode: string, secret: string) => ({
  challengeCode,
  challengeResponse: hmac('sha256', secret, challengeCode).toString('hex'),
})

const HOOK_SECRET = 'x-hook-secret'

/**
 * The header that a verified POST asks to repeat: Asana makes a webhook only if its first request is answered with the
 * secret with which Asana signs the others, which the token in their URL verifies. Other senders may send this header
 * with what they have to say, so only a request without content is a handshake.
 * https://developers.asana.com/docs/webhooks-guide
 */
export function repeatedHeader(
  { verification, sender }: Pick<Receiver, 'verification' | 'sender'>,
  headers: IncomingHttpHeaders,
  bytes: Buffer,
): [name: string, value: string] | undefined {
  const value = headers[HOOK_SECRET]
  if (verification.type !== 'token' || headers['x-hook-signature'] !== undefined) return undefined
  if (sender !== null && sender !== idOfSender(asana)) return undefined
  if (!['', '{}'].includes(bytes.toString().trim())) return undefined
  return typeof value === 'string' && /^[\w-]{1,200}$/.test(value) ? [HOOK_SECRET, value] : undefined
}

/**
 * The answer to the challenge of a verified POST: Slack's is repeated, as is one that is the whole body (monday.com), and
 * Zoom's is signed. Undefined for another request.
 */
export function postedChallenge(
  type: Verification['type'],
  payload: Payload,
  secrets: string[],
): object | undefined {
  const { challenge } = payload
  const isAsked =
    type === 'slack'
      ? payload.type === 'url_verification'
      : type === 'token' && Object.keys(payload).length === 1
  if (isAsked && isShort(challenge)) return { challenge }
  if (type !== 'zoom' || payload.event !== 'endpoint.url_validation') return undefined
  const { plainToken } = Object(payload.payload)
  if (!isShort(plainToken)) return undefined
  return { plainToken, encryptedToken: hmac('sha256', secrets[0]!, plainToken).toString('hex') }
}

const isShort = (text: unknown): text is string => typeof text === 'string' && text.length <= MAX_TEXT
