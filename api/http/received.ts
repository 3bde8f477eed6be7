import type Koa from 'koa'
import { AppError, type Issue } from '../../db/model/errors.ts'
import { MAX_BODY, parseJson, readBody, requireJson } from './body.ts'
import { idempotencyKey } from './idempotency.ts'
import type { AppRoute, RawQuery, Route, Sent } from './route.ts'
import { openUpload, type Upload } from './upload.ts'

/** The parts of a request, parsed but not validated by the operation's schemas. */
export interface Received {
  key: string | undefined
  /** The issues of the headers, which are reported with those of the query and the body. */
  issues: Issue[]
  upload: Upload | undefined
  /** The raw body, unless it is an upload or empty. */
  bytes: Buffer | undefined
  sent: Sent
}

/** Reads the parts of a request, in the order in which the interface promises their errors. */
export async function receive(
  ctx: Koa.Context,
  { route, idempotent }: { route: Route | AppRoute; idempotent: boolean },
  search: string,
): Promise<Received> {
  const { key, issues } = idempotent ? idempotencyKey(ctx.req) : { issues: [] }
  const { accepts, bodyLimit = MAX_BODY } = route
  const upload = accepts && openUpload(ctx.req, accepts, bodyLimit)
  if (upload) ctx.state.uploadLimit = bodyLimit
  const takesJson = !upload && ctx.method !== 'GET' && ctx.method !== 'HEAD'
  const bytes = takesJson ? await readJson(ctx, bodyLimit) : undefined
  return { key, issues, upload, bytes, sent: { query: parseQuery(search), body: bytes && parseJson(bytes) } }
}

/** The raw body. It is also read if the operation accepts none, because then it must be empty. */
async function readJson(ctx: Koa.Context, limit: number): Promise<Buffer | undefined> {
  const bytes = await readBody(ctx.req, limit)
  if (bytes.length === 0) return undefined
  requireJson(ctx.req)
  return bytes
}

/** The parameters by name; a repeated parameter is a list. Throws invalid_request if the encoding is not UTF-8. */
function parseQuery(search: string): RawQuery {
  const query: RawQuery = Object.create(null)
  if (search === '') return query
  requireUtf8(search, 'the query string')
  for (const [name, value] of new URLSearchParams(search)) {
    const before = query[name]
    query[name] = before === undefined ? value : [before, value].flat()
  }
  return query
}

/** Throws invalid_request if the percent-encoding of a query string or a form is not UTF-8. */
export function requireUtf8(encoded: string, what: string): void {
  if (isUtf8(encoded)) return
  throw new AppError('invalid_request', `${what} is not UTF-8`, {
    hint: 'percent-encode non-ASCII characters as UTF-8: é is %C3%A9',
  })
}

/**
 * Whether the percent-encoding is UTF-8; a literal % is allowed. URLSearchParams would decode invalid bytes to U+FFFD,
 * and the list would be empty instead of refused.
 */
function isUtf8(search: string): boolean {
  try {
    for (const [encoded] of search.matchAll(/(?:%[0-9a-f]{2})+/gi)) decodeURIComponent(encoded)
    return true
  } catch {
    return false
  }
}
