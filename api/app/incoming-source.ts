import { z } from 'zod'
import { listSecrets } from '../../db/access/secrets.ts'
import { type Issue, invalid } from '../../db/model/errors.ts'
import type { Source } from '../../db/model/incoming/source.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { type SecretsKey, seal } from '../../db/process/seal.ts'
import { HEADER_NAME } from '../../workflows/nodes/http-fields.ts'
import { ENV_NAME, ENV_NAME_RULE } from '../http/env-name.ts'
import { type EgressConfig, urlIssues } from './endpoint-url.ts'
import { path } from './mapping-schema.ts'

/** Sources of incoming webhooks that are polled: their schema, checks, and the sealing of their headers. */

/** A name of letters, digits, hyphens and dots, or an IPv6 address. */
const HOST = /^([A-Za-z0-9]([A-Za-z0-9-]{0,62}\.?)+|[0-9A-Fa-f:]+:[0-9A-Fa-f:.]*)$/

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

const mailbox = {
  type: z.literal('imap'),
  host: z.string().max(253).regex(HOST, 'is not a host name or an IP address'),
  tls: z.enum(['implicit', 'starttls', 'none']).default('implicit'),
  user: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[ -~\u00a0-\uffff]+$/, 'has a control character'),
  password_secret: z.string().regex(ENV_NAME, ENV_NAME_RULE).meta({
    description: 'The secret of the organization that is the password (PUT /app/secrets/{name}).',
  }),
  folder: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[ -~\u00a0-\uffff]+$/, 'has a control character')
    .default('INBOX'),
  interval_minutes: interval.default(5),
  existing: z.boolean().default(false),
}
const port = z.int().min(1).max(65_535)

export const sourceInput = z
  .discriminatedUnion('type', [
    z.strictObject({ ...list, headers }).meta({ id: 'HttpListSourceCreate' }),
    z.strictObject({ ...feed, headers }).meta({ id: 'FeedSourceCreate' }),
    z
      .strictObject({
        ...mailbox,
        port: port.optional().meta({ description: 'Default: 993; without implicit TLS 143.' }),
      })
      .meta({ id: 'MailboxSourceCreate' }),
  ])
  .nullable()
  .meta({
    id: 'IncomingSourceCreate',
    description:
      'What is polled for requests, where the sender has no webhooks: a JSON list (`http_list`), RSS or Atom (`rss`), or a folder of a mailbox (`imap`, which needs the scope `workflows:author` too, as it sends a secret). Each new item is one request with its own log entry; an item is taken once.',
  })

const header_names = z.array(z.string())
export const sourceSchema = z
  .discriminatedUnion('type', [
    z.object({ ...list, header_names }).meta({ id: 'HttpListSource' }),
    z.object({ ...feed, header_names }).meta({ id: 'FeedSource' }),
    z.object({ ...mailbox, port }).meta({ id: 'MailboxSource' }),
  ])
  .nullable()
  .meta({ id: 'IncomingSource' })

export type SourceInput = z.infer<typeof sourceInput>

/** The columns of a source, with its headers sealed. Throws validation_error for a URL that would be refused. */
export function sourceColumns(
  input: SourceInput,
  { config, secretsKey }: { config: EgressConfig; secretsKey: SecretsKey },
  before: Source | null = null,
): { source: Source | null; source_headers_sealed?: string | null } {
  if (input === null) return { source: null, source_headers_sealed: null }
  const issues = input.type === 'imap' ? mailboxIssues(input, config) : sourceUrlIssues(input, config)
  if (issues.length > 0) throw invalid(issues)
  if (input.type === 'imap')
    return {
      source: { ...input, port: input.port ?? (input.tls === 'implicit' ? 993 : 143) },
      source_headers_sealed: null,
    }
  const { headers, ...source } = input
  const isSameOrigin =
    before && before.type !== 'imap' && new URL(before.url).origin === new URL(source.url).origin
  if (headers === undefined && isSameOrigin)
    return { source: { ...source, header_names: before.header_names } }
  const header_names = Object.keys(headers ?? {})
  return {
    source: { ...source, header_names },
    source_headers_sealed: header_names.length > 0 ? seal(secretsKey, JSON.stringify(headers)) : null,
  }
}

const sourceUrlIssues = (source: { url: string }, config: EgressConfig): Issue[] =>
  urlIssues(source, config).map((issue) => ({ ...issue, loc: ['body', 'source', 'url'] }))

function mailboxIssues(
  { host, tls }: Extract<NonNullable<SourceInput>, { type: 'imap' }>,
  config: EgressConfig,
): Issue[] {
  const name = host.includes(':') ? `[${host}]` : host
  const issues = urlIssues({ url: `https://${name}` }, config).map((issue) => ({
    ...issue,
    loc: ['body', 'source', 'host'],
  }))
  if (tls !== 'none' || config.ALLOW_INSECURE_WEBHOOKS) return issues
  const insecure = {
    loc: ['body', 'source', 'tls'],
    msg: 'would send the password readable to all on the way',
    type: 'invalid_value',
    hint: 'use implicit or starttls; ALLOW_INSECURE_WEBHOOKS=true allows none, outside production',
  }
  return [...issues, insecure]
}

/** Throws validation_error for a mailbox whose password is no secret of the organization. */
export async function assertPassword(tx: Tenant, source: Source | null): Promise<void> {
  if (source?.type !== 'imap') return
  const names = (await listSecrets(tx)).map(({ name }) => name)
  if (names.includes(source.password_secret)) return
  throw invalid([
    {
      loc: ['body', 'source', 'password_secret'],
      msg: `the organization has no secret ${source.password_secret}`,
      type: 'unknown_secret',
      input: source.password_secret,
      hint: `store it first: PUT /app/secrets/${source.password_secret}`,
    },
  ])
}
