import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

/** The form of a secret of Standard Webhooks. */
export const WHSEC = /^whsec_([A-Za-z0-9+/]+={0,2})$/

/**
 * The headers of Standard Webhooks over the exact bytes that are sent.
 * @param secrets `whsec_<base64>`; several during a rotation, so that receivers with either can verify.
 */
export function signatureHeaders(
  secrets: readonly string[],
  message: { id: string; timestamp: Date; body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(message.timestamp.getTime() / 1000))
  const content = `${message.id}.${timestamp}.${message.body}`
  return {
    'webhook-id': message.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => `v1,${hmac(secret, content)}`).join(' '),
  }
}

function hmac(secret: string, content: string): string {
  const key = Buffer.from(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret, 'base64')
  return createHmac('sha256', key).update(content).digest('base64')
}

/** The key of a Standard Webhooks secret: 24 to 64 bytes. Undefined for any other text. */
export function standardKey(secret: string): Buffer | undefined {
  // Buffer.from ignores characters outside of base64: a text of dots would be an empty key.
  const encoded = WHSEC.exec(secret)?.[1]
  if (encoded === undefined) return undefined
  const key = Buffer.from(encoded, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}
