import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Delivery } from '../../db/incoming/deliveries.ts'
import { withoutAttempt } from '../../db/model/incoming/mapping/senders/attempt.ts'
import { ALL_SENDERS } from '../../db/model/incoming/mapping/senders/index.ts'
import { mailgunEventId } from '../../db/model/incoming/mapping/senders/mailgun.ts'
import type { Sender } from '../../db/model/incoming/mapping/senders/types.ts'
import type { Verification } from '../../db/model/incoming/types.ts'
import { isObject } from '../../workflows/shared/is-object.ts'
import { signatureOfMailgun, signedForm, signedTime } from './signatures.ts'

/** Headers with a delivery id, which a sender repeats in a retry. */
const HEADERS = [
  'webhook-id',
  'idempotency-key',
  ...new Set(ALL_SENDERS.flatMap(({ deliveryHeader = [] }) => deliveryHeader)),
]

/**
 * The headers whose id counts by itself, because it is signed or because the sender proves itself by a secret. Requests
 * of other senders could be repeated with another id by anybody who has read one. A generic `hmac` signs no time that
 * would tell a retry from such a repetition.
 */
const PROVEN: { [Type in Verification['type']]?: string[] } = {
  secret: HEADERS,
  token: HEADERS,
  basic: HEADERS,
  hmac: HEADERS,
  standard_webhooks: ['webhook-id'],
  svix: ['svix-id'],
}

/**
 * Senders that sign the body alone, with an id or a time in each body. Anybody who has read such a request could repeat
 * it with another id, so the body is the id. A generic `hmac` signs the body alone too, but its bodies may be equal.
 */
const SIGN_BODY_ALONE: Verification['type'][] = [
  'dialpad',
  'github',
  'meta',
  'shopify',
  'intercom',
  'linear',
  'linkedin',
  'pandadoc',
  'square',
  'typeform',
]

/**
 * @param payload if the body was parsed.
 * @param known the id that a known sender has in its body.
 */
export function deliveryOf(
  headers: IncomingHttpHeaders,
  verification: Verification,
  bytes: Buffer,
  payload?: unknown,
  known?: string,
): Delivery {
  // The token of a retry is not signed, nor the order of a form: what is signed is the id.
  if (verification.type === 'twilio')
    return { fingerprint: sha256('twilio\n').update(signedForm(bytes)).digest(), has_delivery_id: true }
  // The body is not signed, so what is signed, the time and the token without anything between them, counts once.
  // Another attempt may have another token.
  if (verification.type === 'mailgun') {
    const { timestamp, token } = signatureOfMailgun(bytes) ?? {}
    const event = mailgunEventId(payload ?? parsed(bytes))
    const signed = sha256(`mailgun token ${timestamp}${token}`).digest()
    return event
      ? { fingerprint: sha256(`mailgun ${event}`).digest(), has_delivery_id: true, signed }
      : { fingerprint: signed, has_delivery_id: true }
  }
  // The boundary of a multipart form is another one in each repetition.
  const isForm = payload !== undefined && /^multipart\//i.test(headers['content-type'] ?? '')
  const content = isForm ? Buffer.from(JSON.stringify(payload)) : bytes
  const ofBody = () => sha256('\n').update(content).digest()
  const changing = CHANGING[verification.type]
  const stable = changing && stableBody(changing, payload ?? parsed(bytes))
  if (stable) return { fingerprint: sha256('\n').update(stable).digest(), has_delivery_id: true }
  if (SIGN_BODY_ALONE.includes(verification.type)) return { fingerprint: ofBody(), has_delivery_id: true }
  const proven = PROVEN[verification.type]
  const byHeader = ofHeader(headers, proven ?? HEADERS, bytes)
  if (proven && byHeader) return byHeader
  // Ids in the body are signed. A retry of Stripe says anew how many webhooks are pending.
  const event = verification.type === 'stripe' ? idOf(payload ?? parsed(bytes)) : undefined
  if (event) return { fingerprint: sha256(`stripe ${event}`).digest(), has_delivery_id: true }
  if (known) return ofKnown(known, stableOf(known, payload) ?? content)
  const delivery = byHeader ?? { fingerprint: ofBody(), has_delivery_id: false }
  const time = signedTime(verification, headers)
  if (time === undefined || proven) return delivery
  // The content and not the signature, because an ECDSA signature has other valid forms.
  return { ...delivery, signed: sha256(`signed ${time}\n`).update(bytes).digest() }
}

/** By what a repetition of a sender is known, in the words of its documentation: as `deliveryOf` decides. */
export function describeDelivery({
  verification: { type },
  deliveryHeader,
  deliveryId,
  dedupeWindow,
}: Pick<Sender, 'verification' | 'deliveryHeader' | 'deliveryId' | 'dedupeWindow'>): string {
  if (type === 'twilio') return 'the signed fields'
  const changing = CHANGING[type]
  if (changing) return `the body with its \`${changing.id}\`, without what an attempt changes`
  if (SIGN_BODY_ALONE.includes(type)) return 'the body'
  if (type === 'stripe') return 'the `id` of the event'
  if (type === 'mailgun') return 'the `id` of the event, or the signed token'
  const ways = [
    ...(deliveryHeader ? [`\`${deliveryHeader}\``] : []),
    ...(deliveryId ? ['an id in the body'] : []),
    ...(dedupeWindow ? [`an equal body within ${dedupeWindow} s`] : []),
  ]
  return ways.join(', or ')
}

function ofHeader(headers: IncomingHttpHeaders, names: string[], bytes: Buffer): Delivery | undefined {
  const name = names.find((one) => headers[one])
  if (!name) return undefined
  return { fingerprint: sha256(`${name} ${headers[name]}\n`).update(bytes).digest(), has_delivery_id: true }
}

/** The body of a known sender without what an attempt changes; undefined if it changes nothing. */
function stableOf(known: string, payload: unknown): Buffer | undefined {
  const sender = ALL_SENDERS.find(
    ({ name, attemptMembers }) => attemptMembers && known.startsWith(`${name} `),
  )
  return sender && isObject(payload)
    ? Buffer.from(JSON.stringify(withoutAttempt(sender, payload)))
    : undefined
}

interface Changing {
  id: string
  members: string[]
}

/** Members that some senders change in a repetition of a body that has an id. */
const CHANGING: { [Type in Verification['type']]?: Changing } = {
  hubspot: { id: 'eventId', members: ['attemptNumber'] },
  intercom: { id: 'id', members: ['delivery_status', 'delivery_attempts', 'delivered_at'] },
  linear: { id: 'webhookId', members: ['webhookTimestamp'] },
}

/** The body without what a repetition changes, as JSON; undefined for one that has no id. */
function stableBody(changing: Changing, payload: unknown): string | undefined {
  if (!isObject(payload)) return undefined
  const items = Array.isArray(payload.items) ? payload.items : [payload]
  if (!items.every((item) => isObject(item) && item[changing.id] !== undefined)) return undefined
  return JSON.stringify(payload, (name, value) => (changing.members.includes(name) ? undefined : value))
}

/**
 * The delivery of a record of a batch: by the id that its sender gives it, else by the batch and its position. A batch is
 * written in several transactions, so that each record must be found again when the sender repeats it.
 */
export function deliveryOfItem(
  batch: Delivery,
  index: number,
  bytes: Buffer,
  known: string | undefined,
): Delivery {
  if (known) return ofKnown(known, bytes)
  const ofItem = (fingerprint: Buffer) => sha256(`item ${index} `).update(fingerprint).digest()
  return {
    fingerprint: ofItem(batch.fingerprint),
    has_delivery_id: true,
    ...(batch.signed && { signed: ofItem(batch.signed) }),
  }
}

/** With the body: Jotform sends an edited submission with the id of the first one. */
const ofKnown = (id: string, bytes: Buffer): Delivery => ({
  fingerprint: sha256(`known ${id}\n`).update(bytes).digest(),
  has_delivery_id: true,
})

const sha256 = (text: string) => createHash('sha256').update(text)

function idOf(payload: unknown): string | undefined {
  const { id } = Object(payload)
  return typeof id === 'string' && id !== '' ? id : undefined
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
