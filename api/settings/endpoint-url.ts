import { isIP } from 'node:net'
import { EgressPolicy } from '../../db/egress.ts'
import { invalid } from '../../db/errors.ts'

/**
 * Refuses URLs to which deliveries would fail. Host names are not resolved here: the egress policy checks the resolved
 * address at connection time. Throws validation_error.
 */
export function assertAllowedUrl(
  text: string,
  config: { ALLOW_INSECURE_WEBHOOKS: boolean; EGRESS_ALLOW: string[] },
): void {
  // The parser has normalised every notation of an IPv4 address.
  const url = new URL(text)
  const refuse = (msg: string, hint?: string) =>
    invalid([{ loc: ['body', 'url'], msg, type: 'url_refused', ...(hint ? { hint } : {}) }])
  if (url.protocol !== 'https:' && !config.ALLOW_INSECURE_WEBHOOKS)
    throw refuse('must be https', 'ALLOW_INSECURE_WEBHOOKS=true allows http, outside production')
  if (url.username || url.password) throw refuse('must not contain credentials: send a header')
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const address = /(^|\.)localhost$/.test(host) ? '127.0.0.1' : host
  if (isIP(address) !== 0 && !new EgressPolicy(config.EGRESS_ALLOW).allows(address))
    throw refuse('is a private or special address', 'operators can allow its range with EGRESS_ALLOW')
}
