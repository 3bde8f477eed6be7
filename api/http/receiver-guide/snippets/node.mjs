import { createHmac, timingSafeEqual } from 'node:crypto'

/** Returns the event; throws if the request is not genuine or is old. `body`: the text or bytes as received. */
export function verify(secret, headers, body) {
  const timestamp = headers['webhook-timestamp']
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < 300)) throw new Error('the request is old')
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const expected = createHmac('sha256', key)
    .update(`${headers['webhook-id']}.${timestamp}.`)
    .update(body)
    .digest()
  // Several while the secret is rotated.
  const genuine = headers['webhook-signature'].split(' ').some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ''), 'base64')
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
  if (!genuine) throw new Error('the signature is wrong')
  return JSON.parse(body)
}
