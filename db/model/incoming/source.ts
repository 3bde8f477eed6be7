import { createHash } from 'node:crypto'
import { isObject } from '../../../workflows/shared/is-object.ts'
import { AppError } from '../errors.ts'
import { textAt, valueAt } from './mapping/path.ts'
import { type Payload, parseText } from './parse-body.ts'

/** A source that is polled, for senders that have no webhooks. Its headers are sealed in a column of their own. */
export type Source = {
  interval_minutes: number
  /** Whether what the source lists at its first poll is taken; otherwise only what comes after it. */
  existing: boolean
} & (HttpSource | MailSource)

export type HttpSource = { url: string; header_names: string[] } & (
  | { type: 'rss' }
  | {
      type: 'http_list'
      /** The path of the list in the answer; null: the answer, or its only list. */
      items: string | null
      /** The paths of what identifies an item: another value is another item. */
      identity: string[]
      cursor: SourceCursor | null
    }
)

/** A folder of a mailbox. */
export interface MailSource {
  type: 'imap'
  host: string
  port: number
  /** From the first byte, by STARTTLS, or not at all. */
  tls: 'implicit' | 'starttls' | 'none'
  user: string
  /** The secret of the organization that is its password. */
  password_secret: string
  folder: string
}

/** The host of a source, which its log entries name. */
export const hostOf = (source: Source): string =>
  source.type === 'imap' ? source.host : new URL(source.url).hostname

/** How the next page of a list is asked for: by a parameter of the query, and its value in this answer. */
export interface SourceCursor {
  param: string
  from: 'response' | 'last_item'
  path: string
}

export interface SourceItem {
  /** SHA-256 of what identifies it. */
  fingerprint: Buffer
  payload: Payload
}

export interface SourcePage {
  items: SourceItem[]
  /** Where the list goes on; null: the answer does not say. */
  cursor: string | null
}

/** Items of one answer. */
const MOST_ITEMS = 1_000

/** The items of an answer, the oldest first, as a feed lists the newest first. Throws invalid_request. Pure. */
export function readSource(source: HttpSource, text: string): SourcePage {
  const { items, cursor } = source.type === 'rss' ? feedIn(text) : listIn(text, source)
  if (items.length > MOST_ITEMS)
    throw new AppError(
      'invalid_request',
      `the answer has ${items.length} items: at most ${MOST_ITEMS} are accepted`,
      { hint: 'ask for smaller pages, by a parameter of the URL' },
    )
  const unique = new Map(items.map((item) => [item.fingerprint.toString('hex'), item]))
  return { items: [...unique.values()], cursor }
}

export const itemOf = (payload: Payload, identity: unknown): SourceItem => ({
  fingerprint: createHash('sha256')
    .update(`source ${JSON.stringify(identity)}`)
    .digest(),
  payload,
})

function listIn(
  text: string,
  { items, identity, cursor }: Extract<HttpSource, { type: 'http_list' }>,
): SourcePage {
  const body = parseText(text, 'application/json')
  const found = items === null ? onlyListIn(body) : valueAt(body, items)
  if (!Array.isArray(found))
    throw new AppError(
      'invalid_request',
      items === null
        ? 'the answer is no list, and has not exactly one'
        : `the answer has no list at ${items}`,
      { hint: 'name its path as `items` of the source' },
    )
  const objects = found.filter(isObject) as Payload[]
  if (objects.length < found.length)
    throw new AppError('invalid_request', 'the list of the answer has items that are no objects')
  return {
    items: objects.map((item) => {
      const values = identity.map((path) => valueAt(item, path))
      return itemOf(item, values.every((value) => value === undefined) ? item : values)
    }),
    cursor: cursor ? textAt(cursor.from === 'response' ? body : objects.at(-1), cursor.path) || null : null,
  }
}

/** `parseText` puts a body that is an array below `items`. */
function onlyListIn(body: Payload): unknown {
  const lists = Object.values(body).filter(Array.isArray)
  return lists.length === 1 ? lists[0] : undefined
}

/** RSS 0.9 to 2.0 and Atom; names have no prefix any more: `content:encoded` is `encoded`. */
function feedIn(text: string): SourcePage {
  const feed = parseText(text, 'application/xml')
  const entries = [valueAt(feed, 'channel.item') ?? feed.item ?? feed.entry ?? []].flat()
  if (entries.length === 0 && !isObject(feed.channel) && !Object.hasOwn(feed, 'title'))
    throw new AppError('invalid_request', 'the answer is neither RSS nor Atom')
  return { items: entries.filter(isObject).map(entryOf).reverse(), cursor: null }
}

function entryOf(entry: Record<string, unknown>): SourceItem {
  const first = (...paths: string[]) => paths.map((path) => textAt(entry, path)).find(Boolean) ?? null
  const payload = {
    title: first('title'),
    link: linkOf(entry),
    id: first('guid', 'id'),
    author: first('author.name', 'author', 'creator'),
    published_at: timeOf(first('pubDate', 'published', 'date', 'updated')),
    summary: first('description', 'summary'),
    content: first('encoded', 'content'),
    categories: [entry.category ?? []]
      .flat()
      .flatMap((one) => textOf(one) ?? textAt(one, 'term') ?? [])
      .filter(Boolean),
  }
  return itemOf(payload, payload.id ?? payload.link ?? payload)
}

/** Atom has several links, of which the one to the entry is `alternate`, or has no `rel`. */
function linkOf({ link }: Record<string, unknown>): string | null {
  const links = [link ?? []].flat()
  const own =
    links.find((one) => !isObject(one) || ['', 'alternate'].includes(textAt(one, 'rel'))) ?? links[0]
  return textOf(own) ?? (textAt(own, 'href') || null)
}

const textOf = (value: unknown): string | undefined => textAt({ value }, 'value') || undefined

/** RFC 3339 of a time in any form that feeds have; as it is, where none is read. */
function timeOf(text: string | null): string | null {
  const time = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? text : new Date(time).toISOString()
}
