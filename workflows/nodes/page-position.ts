import { NodeError } from '../language/node-error.ts'
import { fieldReader } from '../shared/field-reader.ts'
import { MASK } from '../shared/secret-names.ts'
import type { Paginate } from './paginate.ts'

/** Where a page begins. A link may hold masked secrets, since it is stored between attempts. */
export type Position = { first: true } | { link: string } | { cursor: string } | { page: number }

/** The part of an answer that says where the next page begins. */
export interface Page {
  headers: Record<string, string>
  body: unknown
}

/** The URL of a page, with its query. `first`: that of the first request. Throws NodeError. */
export function urlOf(position: Position, first: URL, { cursor, page }: Paginate): URL {
  if ('link' in position) return linkTo(position.link, first)
  const url = new URL(first)
  if ('cursor' in position) url.searchParams.set(cursor!.parameter, position.cursor)
  if ('page' in position) url.searchParams.set(page!.parameter, String(position.page))
  return url
}

export const firstPosition = ({ page }: Paginate): Position => (page ? { page: page.from } : { first: true })

/** Where the page after this one begins; undefined if there is none. Throws NodeError. */
export function positionAfter(
  at: Position,
  answer: Page & { count: number },
  paginate: Paginate,
): Position | undefined {
  const { link_header, next, cursor, page } = paginate
  if (page) return answer.count === 0 ? undefined : { page: ('page' in at ? at.page : page.from) + page.step }
  if (link_header !== undefined) {
    const link = linkIn(answer.headers.link ?? '', link_header)
    return link === undefined ? undefined : { link }
  }
  const path = next ?? cursor?.path ?? ''
  const value = fieldReader(path)(answer)
  if ('first' in at && value === undefined) requireNoNear(path, answer)
  if (value === undefined || value === null || value === '' || value === false) return undefined
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new NodeError(
      'paginate_path',
      `${path} of the answer is ${Array.isArray(value) ? 'a list' : `of the type ${typeof value}`}: it must be a text or a number`,
    )
  return next === undefined ? { cursor: String(value) } : { link: String(value) }
}

/**
 * A link may lead to the origin of the first request only, because it is called with the credentials of that. A secret
 * that the service repeats in its link was masked in the answer: the parameter keeps its value of the first request.
 */
function linkTo(link: string, first: URL): URL {
  if (!URL.canParse(link, first.href))
    throw new NodeError('paginate_path', `the link to the next page is no URL: ${link.slice(0, 200)}`)
  const url = new URL(link, first)
  if (url.origin !== first.origin)
    throw new NodeError(
      'paginate_host',
      `the link to the next page leads from ${first.origin} to ${url.origin.slice(0, 200)}, which does not get the credentials of this request: follow the pages with \`cursor\` or \`page\`, or call ${first.protocol === 'https:' && url.protocol === 'http:' && url.hostname === first.hostname ? 'them with https' : 'the other host in a node of its own'}`,
    )
  for (const [name, value] of [...url.searchParams])
    if (value.includes(MASK) && first.searchParams.has(name))
      url.searchParams.set(name, first.searchParams.get(name)!)
  if (url.href.includes(MASK) || url.href.includes(encodeURIComponent(MASK)))
    throw new NodeError(
      'paginate_path',
      'the link to the next page has a secret of the request in another place: send the secret as a header',
    )
  url.hash = ''
  return url
}

/** The target of the link with this relation in a Link header (RFC 8288). */
function linkIn(header: string, rel: string): string | undefined {
  const wanted = rel.toLowerCase()
  for (const [, target = '', parameters = ''] of header.matchAll(/<([^<>]*)>([^<]*)/g)) {
    const [, quoted, plain = ''] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? []
    if ((quoted ?? plain).toLowerCase().split(/\s+/).includes(wanted)) return target
  }
  return undefined
}

/** A first page that lacks the member, but has one that is written almost alike, is no last page. */
function requireNoNear(path: string, answer: unknown): void {
  const keys = path.split('.')
  const key = keys.pop()!
  const around = keys.length === 0 ? answer : fieldReader(keys.join('.'))(answer)
  if (typeof around !== 'object' || around === null || Array.isArray(around)) return
  const near = Object.keys(around).find((name) => plain(name) === plain(key))
  if (near !== undefined)
    throw new NodeError(
      'paginate_path',
      `the answer has no ${path}: did you mean ${[...keys, near].join('.')}?`,
    )
}

const plain = (name: string) => name.toLowerCase().replace(/[-_]/g, '')
