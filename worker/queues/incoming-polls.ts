import { randomUUID } from 'node:crypto'
import type { HttpClient } from '../../activities/http/client.ts'
import { accept, type IncomingRequest } from '../../db/incoming/accept.ts'
import { insertLogs } from '../../db/incoming/logs.ts'
import {
  AlreadyMarked,
  endPoll,
  incomingPolls,
  markItems,
  type PolledReceiver,
  type PollState,
  readPolled,
  savePollState,
  unmarked,
} from '../../db/incoming/polls.ts'
import { takeIncomingQuota } from '../../db/incoming/quota.ts'
import { type MapBody, parsedBy } from '../../db/incoming/replays.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { AppError } from '../../db/model/errors.ts'
import { logOf, millisecondsSince, type NewLog } from '../../db/model/incoming/log.ts'
import { failureOf, REFUSALS } from '../../db/model/incoming/refusals.ts'
import { withoutSecrets } from '../../db/model/incoming/secret-fields.ts'
import { readSource, type SourceItem } from '../../db/model/incoming/source.ts'
import { entityOf } from '../../db/model/incoming/target-entity.ts'
import { firstCharacters } from '../../db/model/records/values.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Logger } from '../../db/process/log.ts'
import { open, type SecretsKey } from '../../db/process/seal.ts'
import { sealRequest } from '../../db/process/sealed-request.ts'
import type { JobKey } from '../../db/queue/paged-jobs.ts'
import { HTTP_LIMITS } from '../../workflows/effects/http.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { MASK } from '../../workflows/shared/secret-names.ts'
import type { Queue } from '../relay.ts'

export interface PollDeps {
  db: Database
  log: Logger
  http: Pick<HttpClient, 'call'>
  mapBody: MapBody
  secretsKey: SecretsKey
}

/** The time limit of a request, and after which a poll asks for no further page. */
const REQUEST_MS = 20_000
const TURN_MS = 45_000
/** Items of one transaction. */
const CHUNK = 50
/** Stored characters of an item in the log. */
const MAX_PAYLOAD = 65_536

/** The sources of incoming webhooks that are due. It starts no workflow: a claim is a poll. */
export const incomingPollsQueue = (deps: PollDeps): Queue<JobKey> => ({
  name: 'incoming polls',
  channel: 'agx_incoming_polls',
  atOnce: 8,
  claim: incomingPolls.claim,
  start: (_client, job) => poll(deps, job),
})

/** A reason for which a poll ends, as its owner reads it in `poll_problem`. */
class Problem extends Error {}

/** Asks a source for what it lists, page by page, and accepts what is new as requests to its webhook. */
export async function poll(deps: PollDeps, { organization_id, id }: JobKey): Promise<void> {
  const { db } = deps
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organization_id, SYSTEM, work)
  const webhook = await readPolled(db.system, id)
  if (!webhook) return incomingPolls.release(db.system, [{ organization_id, id }])
  let problem: string | null = null
  let isWhole = true
  try {
    isWhole = await readPages(deps, tenant, webhook)
  } catch (error) {
    const reason = problemOf(error)
    // Of another cause, such as a database that is away: the lease ends, and the poll is repeated.
    if (reason === undefined) throw error
    problem = firstCharacters(reason, 500)
    deps.log.info({ organization_id, webhook_id: id, problem }, 'the poll of a source failed')
  }
  await tenant((tx) => endPoll(tx, webhook, { problem, isWhole }))
}

const problemOf = (error: unknown): string | undefined =>
  error instanceof Problem ||
  error instanceof NodeError ||
  (error instanceof AppError && error.type !== 'unavailable')
    ? error.message
    : undefined

type InTenant = <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>

/** @returns whether the list was read to its end. */
async function readPages(deps: PollDeps, tenant: InTenant, webhook: PolledReceiver): Promise<boolean> {
  if (webhook.storage_full) throw new Problem('the organization stores as much as its plan allows')
  const until = Date.now() + TURN_MS
  const { source } = webhook
  let state: PollState = webhook.source_state ?? {}
  for (;;) {
    const { items, cursor } = readSource(source, await fetchPage(deps, webhook, state.cursor))
    const fresh = await tenant((tx) =>
      unmarked(
        tx,
        webhook.id,
        items.map(({ fingerprint }) => fingerprint),
      ),
    )
    const found = items.filter((_, place) => fresh.has(place))
    if (state.began || source.existing) await acceptAll(deps, tenant, webhook, found)
    else await tenant((tx) => skipExisting(tx, webhook.id, found))
    const isLast = items.length === 0 || cursor === null || cursor === state.cursor
    // The last cursor is asked again: what is added to the list comes after it.
    state = { cursor: cursor ?? state.cursor, began: state.began || isLast }
    await tenant((tx) => savePollState(tx, webhook, state))
    if (isLast) return true
    if (Date.now() > until) return false
  }
}

async function skipExisting(tx: Tenant, webhookId: string, items: SourceItem[]): Promise<void> {
  if (items.length === 0) return
  await markItems(
    tx,
    webhookId,
    items.map(({ fingerprint }) => fingerprint),
  )
}

/** The text of a page. Throws NodeError, Problem. */
async function fetchPage(
  { http, secretsKey }: PollDeps,
  { source, source_headers_sealed }: PolledReceiver,
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
  if (answer.status < 200 || answer.status > 299) throw new Problem(`the source answered ${answer.status}`)
  const { body } = answer
  if (body === null) throw new Problem('the answer of the source is no text')
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  if (Buffer.byteLength(text) > MOST_BYTES)
    throw new Problem(`the answer of the source has more than ${MOST_BYTES} bytes`)
  return text
}

/** It is parsed in the worker's event loop. */
const MOST_BYTES = HTTP_LIMITS.responseBytes / 4

/** Accepts items in their order. Throws Problem above the month's quota: what is left is found by the next poll. */
async function acceptAll(
  deps: PollDeps,
  tenant: InTenant,
  webhook: PolledReceiver,
  items: SourceItem[],
): Promise<void> {
  const { organization_id } = webhook
  for (let start = 0; start < items.length; start += CHUNK) {
    const chunk = items.slice(start, start + CHUNK)
    const quota = { requests: chunk.length }
    const { granted } = await takeIncomingQuota(deps.db.system, organization_id, webhook, quota)
    const read = await Promise.all(chunk.slice(0, granted).map((item) => readItem(deps, webhook, item)))
    const rows = read.flatMap((one) => ('row' in one ? [one.row] : []))
    const requests = read.flatMap((one) => ('request' in one ? [one.request] : []))
    const acceptances = await accept(deps.db, webhook, requests, (tx, written) =>
      markItems(tx, webhook.id, written.map(fingerprintOf)),
    )
    for (const [i, one] of acceptances.entries())
      if ('error' in one && !(one.error instanceof AlreadyMarked))
        rows.push(failedRow(webhook, { ...requests[i]!, mapped: one.mapped }, one.error))
    for (const row of rows)
      await tenant(async (tx) => {
        await markItems(tx, webhook.id, [row.fingerprint!])
        await insertLogs(tx, [row])
      }).catch((error) => {
        if (!(error instanceof AlreadyMarked)) throw error
      })
    if (granted < chunk.length) throw new Problem('the quota of this month is used up')
  }
}

const fingerprintOf = ({ log }: IncomingRequest): Buffer => log.fingerprint

/** An item as a request to its webhook, or the log row of one that writes nothing. */
async function readItem(
  { mapBody, secretsKey }: PollDeps,
  webhook: PolledReceiver,
  { fingerprint, payload }: SourceItem,
): Promise<{ request: IncomingRequest } | { row: NewLog }> {
  const started = performance.now()
  const { organization_id, secret_fields } = webhook
  const text = JSON.stringify(payload)
  const parsed = await parsedBy(
    mapBody,
    organization_id,
    { content: text, type: 'application/json' },
    webhook,
  )
  const hidden = parsed instanceof AppError ? undefined : parsed.hidden
  const shown = hidden?.isFound
    ? JSON.stringify(hidden.payload)
    : secret_fields.length > 0 && !hidden
      ? MASK
      : text
  const kept = firstCharacters(shown, MAX_PAYLOAD)
  const log = {
    webhook_id: webhook.id,
    source_ip: new URL(webhook.source.url).hostname,
    headers: {},
    content_type: 'application/json',
    payload: kept,
    payload_truncated: kept !== shown,
    payload_rest: kept === shown ? null : shown.slice(kept.length),
    payload_sealed:
      shown === text ? null : sealRequest(secretsKey, organization_id, { text, headers: {}, secret_fields }),
    payload_size: Buffer.byteLength(text),
    verified: true,
    context: null,
    fingerprint,
    has_delivery_id: true,
  }
  const trace = { traceId: randomUUID() }
  if (parsed instanceof AppError) return { row: failedRow(webhook, { log, started }, parsed) }
  const request = { ...parsed, hidden, trace, started, log }
  const { skip } = parsed.mapped
  if (skip === undefined) return { request }
  return { row: rowOf(webhook, request, { action: 'Skipped', message: `${skip}: nothing was written` }) }
}

type ReadItem = Pick<IncomingRequest, 'log' | 'started'> & Partial<Pick<IncomingRequest, 'mapped' | 'hidden'>>

/** The log row of an item that cannot be written, which can be replayed. Throws what is no fault of the item. */
function failedRow(webhook: PolledReceiver, item: ReadItem, error: unknown): NewLog {
  const failure = error instanceof AppError ? failureOf(error) : undefined
  if (!failure) throw error
  const { code, message, details } = failure
  return rowOf(webhook, item, {
    status: 'Failed',
    http_status: REFUSALS[code],
    error: code,
    message,
    error_details: details,
  })
}

const rowOf = (
  { kind }: PolledReceiver,
  { log, started, mapped, hidden }: ReadItem,
  outcome: Partial<NewLog>,
) =>
  withoutSecrets(
    hidden,
    logOf(log, {
      response_time_ms: millisecondsSince(started),
      mapped_data: mapped && { entity: entityOf(kind), ...mapped },
      warnings: mapped?.warnings ?? [],
      ...outcome,
    }),
  )
