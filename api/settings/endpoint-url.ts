import { isIP } from 'node:net'
import { EgressPolicy } from '../../db/egress.ts'
import { invalid } from '../../db/errors.ts'

/**
 * Says early what a delivery would be refused for. What a name resolves to is looked at when it is connected to, and
 * only there.
 * Throws validation_error.
 */
export function assertMayBeCalled(
  text: string,
  config: { ALLOW_INSECURE_WEBHOOKS: boolean; EGRESS_ALLOW: string[] },
): void {
  // A URL in standard form: the parser has resolved every spelling of an IPv4 address.
  const url = new URL(text)
  const refuse = (msg: string, hint?: string) =>
    invalid([{ loc: ['body', 'url'], msg, type: 'url_refused', ...(hint ? { hint } : {}) }])
  if (url.protocol !== 'https:' && !config.ALLOW_INSECURE_WEBHOOKS)
    throw refuse('must be https', 'ALLOW_INSECURE_WEBHOOKS=true allows http, outside production')
  if (url.username || url.password) throw refuse('must not hold credentials: send a header')
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const address = /(^|\.)localhost$/.test(host) ? '127.0.0.1' : host
  if (isIP(address) !== 0 && !new EgressPolicy(config.EGRESS_ALLOW).allows(address))
    throw refuse('is a private or special address', 'operators can allow its range with EGRESS_ALLOW')
}
