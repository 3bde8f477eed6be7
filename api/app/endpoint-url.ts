import { isIP } from 'node:net'
import { type Issue, invalid } from '../../db/model/errors.ts'
import { EgressPolicy } from '../../db/process/egress.ts'

export interface EgressConfig {
  ALLOW_INSECURE_WEBHOOKS: boolean
  EGRESS_ALLOW: string[]
  EGRESS_ONLY: string[]
}

/** Throws validation_error for a URL to which deliveries would fail. */
export function assertAllowedUrl(url: string, config: EgressConfig): void {
  const issues = urlIssues({ url }, config)
  if (issues.length > 0) throw invalid(issues)
}

/**
 * The issues of the `url` in an unvalidated body. Empty if it is no URL, which the schema refuses. Host names are not
 * resolved here: the egress policy checks the resolved address at connection time.
 */
export function urlIssues(body: unknown, config: EgressConfig): Issue[] {
  const text = (body as { url?: unknown } | null | undefined)?.url
  if (typeof text !== 'string' || !URL.canParse(text)) return []
  // `new URL` normalises every notation of an IPv4 address.
  const url = new URL(text)
  const refuse = (msg: string, hint?: string): Issue[] => [
    { loc: ['body', 'url'], msg, type: 'url_refused', ...(hint ? { hint } : {}) },
  ]
  if (url.protocol !== 'https:' && !config.ALLOW_INSECURE_WEBHOOKS)
    return refuse('must be https', 'ALLOW_INSECURE_WEBHOOKS=true allows http, outside production')
  if (url.username || url.password) return refuse('must not contain credentials: send a header')
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const address = /(^|\.)localhost$/.test(host) ? '127.0.0.1' : host
  const policy = new EgressPolicy(config.EGRESS_ALLOW, config.EGRESS_ONLY)
  if (!policy.lists(host))
    return refuse('is not a host that the operator of the service has listed (EGRESS_ONLY)')
  if (isIP(address) !== 0 && !policy.allows(address))
    return refuse('is a private or special address', 'operators can allow its range with EGRESS_ALLOW')
  return []
}
