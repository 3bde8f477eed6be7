import { z } from 'zod'
import { invalid } from '../../db/model/errors.ts'
import type { Source } from '../../db/model/incoming/source.ts'
import { type SecretsKey, seal } from '../../db/process/seal.ts'
import { HEADER_NAME } from '../../workflows/nodes/http-fields.ts'
import { type EgressSettings, urlIssues } from './endpoint-url.ts'
import { path } from './mapping-schema.ts'

/** Sources of incoming webhooks that are polled: their schema, and the sealing of their headers. */

const url = z.url({ protocol: /^https?$/ }).max(2_000)
const interval = z.int().min(1).max(1_440).meta({ description: 'Minutes between two polls.' })

const headers = z
  .record(
    z.string().max(100).regex(HEADER_NAME, 'is not a header name').toLowerCase(),
    z
      .string()
      .max(4_000)
      .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'has a character that is not allowed in a header'),
  )
  .refine((all) => Object.keys(all).length <= 20, 'must have at most 20 headers')
  .optional()
  .meta({
    description:
      'Headers of every request. Values are stored encrypted and never returned; left out, those of before stay for the same origin.',
  })

const cursor = z
  .strictObject({
    param: z.string().min(1).max(100).meta({ description: 'The parameter of the query: `starting_after`.' }),
    from: z.enum(['response', 'last_item']).default('response'),
    path: path.meta({ description: 'Where its next value is: `next_cursor`, or `id` of the last item.' }),
  })
  .meta({ id: 'SourceCursor' })

const list = {
  type: z.literal('http_list'),
  url,
  interval_minutes: interval.default(15),
  existing: z
    .boolean()
    .default(true)
    .meta({ description: 'Take what is listed at the first poll; otherwise only what comes after it.' }),
  items: path
    .nullable()
    .default(null)
    .meta({ description: 'The path of the list in the answer; null: the answer itself, or its only list.' }),
  identity: z.array(path).min(1).max(5).default(['id']).meta({
    description:
      'What identifies an item: with `["id", "updated_at"]` a changed item is taken again. Without such values, the whole item.',
  }),
  cursor: cursor.nullable().default(null),
}
const feed = {
  type: z.literal('rss'),
  url,
  interval_minutes: interval.default(15),
  existing: z.boolean().default(false),
}

export const sourceInput = z
  .discriminatedUnion('type', [
    z.strictObject({ ...list, headers }).meta({ id: 'HttpListSourceCreate' }),
    z.strictObject({ ...feed, headers }).meta({ id: 'FeedSourceCreate' }),
  ])
  .nullable()
  .meta({
    id: 'IncomingSourceCreate',
    description:
      'What is polled for requests, where the sender has no webhooks: a JSON list (`http_list`), or RSS or Atom (`rss`). Each new item is one request with its own log entry; an item is taken once.',
  })

const header_names = z.array(z.string())
export const sourceSchema = z
  .discriminatedUnion('type', [
    z.object({ ...list, header_names }).meta({ id: 'HttpListSource' }),
    z.object({ ...feed, header_names }).meta({ id: 'FeedSource' }),
  ])
  .nullable()
  .meta({ id: 'IncomingSource' })

export type SourceInput = z.infer<typeof sourceInput>

/** The columns of a source, with its headers sealed. Throws validation_error for a URL that would be refused. */
export function sourceColumns(
  input: SourceInput,
  { config, secretsKey }: { config: EgressSettings; secretsKey: SecretsKey },
  before: Source | null = null,
): { source: Source | null; source_headers_sealed?: string | null } {
  if (input === null) return { source: null, source_headers_sealed: null }
  const issues = urlIssues(input, config)
  if (issues.length > 0) throw invalid(issues.map((issue) => ({ ...issue, loc: ['body', 'source', 'url'] })))
  const { headers, ...source } = input
  if (headers === undefined && before && new URL(before.url).origin === new URL(source.url).origin)
    return { source: { ...source, header_names: before.header_names } }
  const header_names = Object.keys(headers ?? {})
  return {
    source: { ...source, header_names },
    source_headers_sealed: header_names.length > 0 ? seal(secretsKey, JSON.stringify(headers)) : null,
  }
}
