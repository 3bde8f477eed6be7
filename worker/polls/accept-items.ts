import { randomUUID } from 'node:crypto'
import { accept, type IncomingRequest } from '../../db/incoming/accept.ts'
import { insertLogs } from '../../db/incoming/logs.ts'
import { AlreadyMarked, markItems, type PolledReceiver } from '../../db/incoming/polls.ts'
import { takeIncomingQuota } from '../../db/incoming/quota.ts'
import { parsedBy } from '../../db/incoming/replays.ts'
import { AppError } from '../../db/model/errors.ts'
import { logOf, millisecondsSince, type NewLog } from '../../db/model/incoming/log.ts'
import { hasNoEffect } from '../../db/model/incoming/mapping/types.ts'
import { nothingWritten } from '../../db/model/incoming/outcome.ts'
import { failureOf, REFUSALS } from '../../db/model/incoming/refusals.ts'
import { withoutSecrets } from '../../db/model/incoming/secret-fields.ts'
import { hostOf, type SourceItem } from '../../db/model/incoming/source.ts'
import { entityOf } from '../../db/model/incoming/target-entity.ts'
import { firstCharacters } from '../../db/model/records/values.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import { sealRequest } from '../../db/process/sealed-request.ts'
import { MASK } from '../../workflows/shared/secret-names.ts'
import type { IncomingThreads } from './incoming-threads.ts'
import { type InTenant, Problem } from './page.ts'

interface AcceptDeps {
  db: Database
  threads: Pick<IncomingThreads, 'mapBody'>
  secretsKey: SecretsKey
}

/** Items of one transaction. */
const CHUNK = 50
/** Stored characters of an item in the log. */
const MAX_PAYLOAD = 65_536

/** Accepts items in their order. Throws Problem above the month's quota: what is left is found by the next poll. */
export async function acceptAll(
  deps: AcceptDeps,
  tenant: InTenant,
  webhook: PolledReceiver,
  items: SourceItem[],
): Promise<void> {
  const { organization_id } = webhook
  for (let start = 0; start < items.length; start += CHUNK) {
    const chunk = items.slice(start, start + CHUNK)
    const quota = { requests: chunk.length }
    const { granted } = await takeIncomingQuota(deps.db.system, organization_id, webhook, quota)
    const read: Awaited<ReturnType<typeof readItem>>[] = []
    // One after the other: an organization has one thread, for which few tasks may wait.
    for (const item of chunk.slice(0, granted)) read.push(await readItem(deps, webhook, item))
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

/** Turns an item into a request to its webhook, or into a log row if the item writes nothing. */
async function readItem(
  { threads, secretsKey }: AcceptDeps,
  webhook: PolledReceiver,
  { fingerprint, payload }: SourceItem,
): Promise<{ request: IncomingRequest } | { row: NewLog }> {
  const started = performance.now()
  const { organization_id, secret_fields } = webhook
  const text = JSON.stringify(payload)
  const parsed = await parsedBy(
    threads.mapBody,
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
    source_ip: hostOf(webhook.source),
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
  if (!hasNoEffect(parsed.mapped)) return { request }
  const message = nothingWritten(parsed.mapped.skip!, webhook)
  return { row: rowOf(webhook, request, { action: 'Skipped', message }) }
}

type ReadItem = Pick<IncomingRequest, 'log' | 'started'> & Partial<Pick<IncomingRequest, 'mapped' | 'hidden'>>

/** The log row of an item that cannot be written, which can be replayed. Rethrows errors that the item did not cause. */
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
