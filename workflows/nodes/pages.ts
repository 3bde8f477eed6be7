import { createHash } from 'node:crypto'
import type { HttpRequest, HttpResponse } from '../effects/http.ts'
import { NodeError } from '../language/node-error.ts'
import { fieldReader } from '../shared/field-reader.ts'
import { isObject } from '../shared/is-object.ts'
import { LIMITS } from '../shared/run-limits.ts'
import type { NodeFacts } from './define.ts'
import { firstPosition, type Position, positionAfter, urlOf } from './page-position.ts'
import type { Paginate } from './paginate.ts'

/** What is kept between attempts. */
interface Kept {
  at: Position
  items: unknown[]
  pages: number
  bytes: number
  /** Hashes of the positions, or with page numbers of the last body: a page that comes again would never end. */
  seen: string[]
}

export interface PagesOptions {
  request: HttpRequest
  paginate: Paginate
  /** The condition, as written. */
  until: string | undefined
  ctx: NodeFacts
  /** One call. Throws NodeError if the answer is not what is expected. */
  call(request: HttpRequest): Promise<HttpResponse>
  /** The answer with its secret values masked, of which the items are. */
  shown(response: HttpResponse): HttpResponse
}

/** The bytes of the output beside its items. */
const FRAME_BYTES = 1_024

type Pages = { items: unknown[]; pages: number; ended_by: 'end' | 'until' | 'limit' }

/**
 * Reads pages until the last one, a condition or a limit. After each page the attempt keeps what it has: a page that
 * fails is called again alone, and an attempt that has taken its time leaves the rest to the next one.
 */
export async function readPages({
  request,
  paginate,
  until,
  ctx,
  call,
  shown,
}: PagesOptions): Promise<Pages> {
  const first = firstUrl(request)
  let kept: Kept = (ctx.progress.kept as Kept | undefined) ?? startOf(first, paginate)
  for (;;) {
    ctx.signal.throwIfAborted()
    if (ctx.progress.isDue()) throw goesOn(kept.pages)
    const response = await call({ ...request, query: {}, url: urlOf(kept.at, first, paginate).href })
    const { status, headers, body } = shown(response)
    const page = { status, headers, body }
    const items = itemsOf(page, paginate)
    const bytes = kept.bytes + Buffer.byteLength(JSON.stringify(items))
    if (bytes > LIMITS.valueBytes - FRAME_BYTES) {
      const size = `${LIMITS.valueBytes / 1024 / 1024} MiB`
      return limited(kept, paginate, `the items of ${kept.pages + 1} pages are larger than ${size}`)
    }
    kept = { ...kept, items: kept.items.concat(items), pages: kept.pages + 1, bytes }
    if (kept.items.length > paginate.max)
      return limited(kept, paginate, `there are more than ${paginate.max} items`)
    if (until !== undefined && holds(until, page, ctx)) return ended(kept, 'until')
    const next = positionAfter(kept.at, { ...page, count: items.length }, paginate)
    if (next === undefined) return ended(kept, 'end')
    if (kept.pages >= paginate.max_pages)
      return limited(kept, paginate, `there are more than ${paginate.max_pages} pages`)
    kept = { ...kept, at: next, seen: seenWith(kept.seen, next, response.body, first, paginate) }
    ctx.progress.keep(kept)
  }
}

function firstUrl({ url: text, query = {} }: HttpRequest): URL {
  if (!URL.canParse(text)) throw new NodeError('invalid_url', 'the URL cannot be parsed')
  const url = new URL(text)
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value)
  return url
}

const startOf = (first: URL, paginate: Paginate): Kept => ({
  at: firstPosition(paginate),
  items: [],
  pages: 0,
  bytes: 0,
  seen: paginate.page ? [] : [hash(first.href)],
})

function itemsOf(page: { headers: Record<string, string>; body: unknown }, { items: path }: Paginate) {
  const items = fieldReader(path)(page)
  if (Array.isArray(items)) return items
  const names = isObject(page.body) ? Object.keys(page.body).slice(0, 20).join(', ') : ''
  throw new NodeError(
    'paginate_path',
    `${path} of the answer is no list${names === '' ? '' : `: body has ${names}`}; \`items\` names the list: \`items: body.data\``,
  )
}

function holds(until: string, page: unknown, ctx: NodeFacts): boolean {
  const value = ctx.renderWith(until, { page })
  if (typeof value === 'boolean') return value
  throw new NodeError('invalid_config', 'until must be true or false')
}

/** Throws NodeError `paginate_loop`. */
function seenWith(seen: string[], next: Position, body: unknown, first: URL, paginate: Paginate): string[] {
  const found = hash('page' in next ? JSON.stringify(body) : urlOf(next, first, paginate).href)
  if (seen.includes(found))
    throw new NodeError(
      'paginate_loop',
      'page' in next
        ? `the service answers the page ${next.page - paginate.page!.step} with the same body as the one before: check \`parameter\`, or end with \`until\``
        : 'the next page is one that was read before: check the path, or end with `until`',
    )
  return 'page' in next ? [found] : [...seen, found]
}

const hash = (text: string) => createHash('sha256').update(text).digest('base64url').slice(0, 16)

const ended = ({ items, pages }: Kept, ended_by: Pages['ended_by']): Pages => ({ items, pages, ended_by })

function limited(kept: Kept, { on_limit, max }: Paginate, why: string): Pages {
  if (on_limit === 'fail')
    throw new NodeError(
      'page_limit',
      `${why}: narrow the request, raise the limit, or take what fits with \`on_limit: stop\``,
    )
  return { ...ended(kept, 'limit'), items: kept.items.slice(0, max) }
}

/** No failure: the call has made room for others. */
const goesOn = (pages: number) =>
  new NodeError('reading_pages', `${pages} pages are read; the next attempt goes on.`, { waits: true })
