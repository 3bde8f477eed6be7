import type { Receiver } from '../../db/incoming/receiving.ts'
import type { Payload } from '../../db/model/incoming/parse-body.ts'
import type { Target } from './request-url.ts'
import { equal } from './verify.ts'

/** What a sender asks with GET when the webhook is set up, and whether it has the secret. */
export interface Challenge {
  /** The name of the challenge, for the log. */
  kind: string
  verified: boolean
  /** The text to answer; without it the answer is JSON. */
  text?: string
}

/** Longer texts are no challenges. */
const MAX_TEXT = 500

/**
 * The challenge of a GET request: Meta sends the secret as its verify token and a text to repeat; Mailchimp and others
 * look whether the URL, with its token, exists. Undefined for any other GET request.
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
  if (verification.type === 'token') return { kind: 'check of the URL', verified: has(token ?? '') }
  return undefined
}

/** Slack's challenge, a signed POST: the text to repeat. */
export function slackChallenge(payload: Payload): string | undefined {
  const { type, challenge } = payload
  const isOne = type === 'url_verification' && typeof challenge === 'string' && challenge.length <= MAX_TEXT
  return isOne ? challenge : undefined
}
