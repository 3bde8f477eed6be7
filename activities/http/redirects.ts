import { HEADERS_TO_OTHER_ORIGINS } from '../../workflows/effects/http.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { checkUrl } from './url.ts'

/** One request of a chain of redirects. */
export interface Hop {
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
}

const HARMLESS = new Set(HEADERS_TO_OTHER_ORIGINS)

export const isRedirect = (status: number) => [301, 302, 303, 307, 308].includes(status)

/**
 * The request that follows a redirect. 303 becomes a GET without a body, and so do 301 and 302 after a POST, as in
 * browsers. Any other redirect repeats method and body, but sends a body to another origin only with
 * `bodyToOtherOrigins`. Credentials are never sent to another origin.
 *
 * Throws NodeError `redirect_refused` for a body that must not be sent, a redirect from https to http, and a URL that
 * `checkUrl` refuses.
 */
export function nextHop(
  from: Hop,
  { status, location }: { status: number; location: string },
  { bodyToOtherOrigins = false }: { bodyToOtherOrigins?: boolean | undefined },
): Hop {
  const current = new URL(from.url)
  const target = targetOf(location, from.url, status)
  if (current.protocol === 'https:' && target.protocol === 'http:')
    throw refused(status, 'leads from https to http')
  let hop = { ...from, url: target.href }
  if (becomesGet(status, from.method))
    hop = { ...hop, method: 'GET', body: undefined, headers: without(hop.headers, isOfBody) }
  if (target.origin === current.origin) return hop
  if (hop.body !== undefined && !bodyToOtherOrigins)
    throw refused(
      status,
      `leads to another origin, ${target.origin}: the body is sent there only if body_to_other_origins is true`,
    )
  return { ...hop, headers: without(hop.headers, (name) => !HARMLESS.has(name)) }
}

const becomesGet = (status: number, method: string) =>
  status === 303 ? method !== 'HEAD' : status < 303 && method === 'POST'

const isOfBody = (name: string) => name.startsWith('content-')

function targetOf(location: string, base: string, status: number): URL {
  try {
    return checkUrl(location, base)
  } catch (error) {
    throw refused(status, `cannot be followed: ${(error as Error).message}`)
  }
}

const refused = (status: number, why: string) =>
  new NodeError('redirect_refused', `the redirect (status ${status}) ${why}`)

/** `drop` receives names in lower case. */
const without = (headers: Record<string, string>, drop: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !drop(name.toLowerCase())))
