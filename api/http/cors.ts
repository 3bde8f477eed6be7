import type Koa from 'koa'

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
/** The request headers that /v1 and /mcp read. The other headers that browsers send need no permission. */
const REQUEST_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, Prefer, X-Request-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name'
/** The response headers that pages may read. */
const RESPONSE_HEADERS = [
  'X-Request-Id',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'ETag',
  'Allow',
  'Idempotency-Replayed',
  'Preference-Applied',
  'Content-Disposition',
  'WWW-Authenticate',
].join(', ')
const PREFLIGHT_SECONDS = '600'

/**
 * CORS: lets pages of the given origins (`*`: all) read responses. It allows no credentials: a browser sends no cookie,
 * and the page sends a key. Other origins get no CORS header, so browsers refuse the response.
 * @returns a function that sets the headers and answers preflights; it returns true for a preflight.
 */
export function createCors(origins: readonly string[]): (ctx: Koa.Context) => boolean {
  if (origins.length === 0) return () => false
  const allowsAll = origins.includes('*')
  return ({ method, req, res }) => {
    // Set even without an Allow-Origin header: a cache must not serve that response to an allowed page.
    if (!allowsAll) res.setHeader('Vary', 'Origin')
    const { origin } = req.headers
    if (origin === undefined || !(allowsAll || origins.includes(origin))) return false
    res.setHeader('Access-Control-Allow-Origin', allowsAll ? '*' : origin)
    if (method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) {
      res.setHeader('Access-Control-Expose-Headers', RESPONSE_HEADERS)
      return false
    }
    res.setHeader('Access-Control-Allow-Methods', METHODS)
    res.setHeader('Access-Control-Allow-Headers', REQUEST_HEADERS)
    res.setHeader('Access-Control-Max-Age', PREFLIGHT_SECONDS)
    return true
  }
}
