import type { PolledReceiver } from '../../db/incoming/polls.ts'
import type { HttpSource } from '../../db/model/incoming/source.ts'
import { open } from '../../db/process/seal.ts'
import { HTTP_LIMITS } from '../../workflows/effects/http.ts'
import { type PageDeps, type PageReader, Problem } from './page.ts'

/** The time limit of a request. */
const REQUEST_MS = 20_000
/** The statuses by which a source refuses the credentials in the headers. */
const REFUSALS = [401, 403]
const MOST_BYTES = HTTP_LIMITS.responseBytes / 4

/** The pages of a list or feed that is asked for by HTTP. */
export const httpPages = (
  deps: PageDeps,
  { organization_id, source_headers_sealed }: PolledReceiver,
  source: HttpSource,
): PageReader => ({
  async read(state) {
    const text = await fetchPage(deps, source, source_headers_sealed, state.cursor)
    const { items, cursor } = await deps.threads.readPage(organization_id, source, text)
    // The last cursor is asked again: what is added to the list comes after it.
    const isLast = items.length === 0 || cursor === null || cursor === state.cursor
    return { items, cursor: cursor ?? state.cursor, isLast }
  },
  close: () => {},
})

/** The text of a page. Throws NodeError, Problem. */
async function fetchPage(
  { http, secretsKey }: PageDeps,
  source: HttpSource,
  source_headers_sealed: string | null,
  cursor: string | undefined,
): Promise<string> {
  const own = source_headers_sealed ? JSON.parse(open(secretsKey, source_headers_sealed)) : {}
  const param = source.type === 'http_list' ? source.cursor?.param : undefined
  const answer = await http.call(
    {
      method: 'GET',
      url: source.url,
      headers: {
        accept:
          source.type === 'rss'
            ? 'application/rss+xml, application/atom+xml, application/xml, text/xml'
            : 'application/json',
        'user-agent': 'agx-sources',
        ...own,
      },
      ...(param !== undefined && cursor !== undefined && { query: { [param]: cursor } }),
    },
    { signal: AbortSignal.timeout(REQUEST_MS), timeoutMs: REQUEST_MS },
  )
  if (answer.status < 200 || answer.status > 299)
    throw new Problem(`the source answered ${answer.status}`, { isRefused: REFUSALS.includes(answer.status) })
  const { body } = answer
  if (body === null) throw new Problem('the answer of the source is no text')
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  if (Buffer.byteLength(text) > MOST_BYTES)
    throw new Problem(`the answer of the source has more than ${MOST_BYTES} bytes`)
  return text
}
