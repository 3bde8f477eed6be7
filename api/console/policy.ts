import type Koa from 'koa'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'

/** No inline code, nothing from another host, in no frame; scripts make no HTML but through one named policy. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types agx',
].join('; ')

/** The pages that other sites open in a window of theirs, to connect an assistant: it must stay theirs to the end. */
const OPENED_BY_OTHERS = /^\/(?:oauth\/|sign-in$)/

/** `same-origin`: with `no-referrer` browsers would send `Origin: null` with the forms. */
export function setPolicies(ctx: Koa.Context, path: string): void {
  ctx.set({
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'Referrer-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': OPENED_BY_OTHERS.test(path) ? 'unsafe-none' : 'same-origin',
    'X-Robots-Tag': 'noindex',
  })
}

/** The policy of a page whose form leads to another address: browsers hold redirects of a form against it, too. */
export function policyWithFormTarget(url: string): string {
  const { protocol, origin, hostname } = new URL(url)
  // A scheme of a program has no origin, and the policy cannot name an address of IPv6.
  const source = origin === 'null' || hostname.startsWith('[') ? protocol : origin
  return CONTENT_SECURITY_POLICY.replace("form-action 'self'", `form-action 'self' ${source}`)
}

/**
 * Refuses a form of another site. The CSRF token protects the forms of a session; this protects the sign-in, which has
 * none, and is a second wall for the others. Clients that are no browsers send neither header.
 */
export function requireOwnForm({ req: { headers } }: Koa.Context, { config }: AppDeps): void {
  const { origin, host } = headers
  const site = headers['sec-fetch-site']
  const own = config.PUBLIC_URL && new URL(config.PUBLIC_URL).origin
  const isForeign =
    site === undefined
      ? origin !== undefined && ![own, `http://${host}`, `https://${host}`].includes(origin)
      : site !== 'same-origin' && site !== 'none'
  if (isForeign)
    throw new AppError('csrf_token_invalid', 'the form was sent by a page of another site', {
      hint: 'open the console by its own address',
    })
}
