import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

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
