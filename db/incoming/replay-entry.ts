import type { Subscription } from '../access/plans.ts'
import { AppError } from '../model/errors.ts'
import { fitted } from '../model/incoming/fit.ts'
import {
  LOG_ACTION_OF,
  logOf,
  millisecondsSince,
  type NewLog,
  type RequestContext,
} from '../model/incoming/log.ts'
import type { Body, MappedPayload } from '../model/incoming/map-body.ts'
import { senderHeaders } from '../model/incoming/mapping/senders/index.ts'
import { hasNoEffect, type Mapped } from '../model/incoming/mapping/types.ts'
import { mappedData, messageOf } from '../model/incoming/outcome.ts'
import { failureOf, REFUSALS, UNCOUNTED } from '../model/incoming/refusals.ts'
import { withoutSecrets } from '../model/incoming/secret-fields.ts'
import { entityOf } from '../model/incoming/target-entity.ts'
import type { IncomingWebhook, Write } from '../model/incoming/types.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import type { SecretsKey } from '../process/seal.ts'
import { openRequest } from '../process/sealed-request.ts'
import { type Applied, applyMapped, withFittingValues } from './apply.ts'
import { type Claim, claimFingerprints, storeDeliveries, windowOf } from './deliveries.ts'
import { insertLog } from './logs.ts'
import { takeIncomingQuota } from './quota.ts'
import { acceptedEqual, lockEntry, type ReplayedEntry } from './replay-entries.ts'

/** What a mapping makes of a payload, or why it makes nothing. */
export type Parsed = MappedPayload | AppError

/** The result of a payload that was replayed or tried. */
export interface Outcome {
  outcome: Write | 'failed'
  message: string
  /** For `failed`: the code and, by field, the reasons. */
  error: string | null
  details: Record<string, string>
  record_id: string | null
  run_id: string | null
  warnings: string[]
  mapped_data: unknown
}

/** The body of an entry, for its mapping, and the secret fields of the webhook when it arrived. */
export function bodyOf(
  organizationId: string,
  { payload, payload_rest, payload_sealed, content_type, headers }: ReplayedEntry,
  key: SecretsKey,
): Body & { secretFields: string[] } {
  const type = content_type ?? ''
  if (payload_sealed !== null) {
    const { text, headers, secret_fields } = openRequest(key, organizationId, payload_sealed)
    return { content: text, type, headers, secretFields: secret_fields }
  }
  const content = (payload ?? '') + (payload_rest ?? '')
  return { content, type, headers: senderHeaders(headers), secretFields: [] }
}

/** The organization's quota does not allow the replay. Nothing was written. */
export const QUOTA_EXCEEDED = 'quota_exceeded'

/**
 * Repeats a request in the caller's transaction, and logs it. Effects are not repeated: a request is skipped if an equal
 * one was accepted; if it made a record, that record is updated, without another note or workflow. Undefined if the entry
 * has expired.
 */
export async function replayEntry(
  tx: Tenant,
  webhook: IncomingWebhook,
  subscription: Subscription,
  entry: ReplayedEntry,
  parsed: Parsed,
  replayId: string | null,
): Promise<Outcome | typeof QUOTA_EXCEEDED | undefined> {
  if (!(await lockEntry(tx, webhook.id, entry.id))) return undefined
  const started = performance.now()
  const whole = onlyWhole(parsed)
  const outcome = (await earlierOutcome(tx, webhook, entry)) ?? (await within())
  if (outcome === QUOTA_EXCEEDED) return outcome
  await insertLog(tx, rowOf(webhook, entry, outcome, replayId, started))
  return outcome

  async function within(): Promise<Outcome | typeof QUOTA_EXCEEDED> {
    const isNew = entry.status === 'Blocked' && UNCOUNTED.includes(entry.error ?? '')
    if (isNew && (await takeIncomingQuota(tx.trx, tx.organizationId, subscription)).granted === 0)
      return QUOTA_EXCEEDED
    const { changes: _, ...done } = await tryPayload(tx, webhook, whole, entry.context, ontoOf(entry), false)
    if (
      claimOf(webhook, entry) &&
      entry.status !== 'Success' &&
      done.outcome !== 'failed' &&
      (done.record_id || done.outcome === 'triggered')
    )
      await storeDeliveries(tx, webhook.id, [
        {
          fingerprint: entry.fingerprint!,
          answer: {
            record_id: done.record_id,
            entity: entityOf(webhook.kind),
            action: done.outcome,
          },
        },
      ])
    return done
  }
}

/** A batch that was refused before its records were told apart is one entry: its first record alone would be written. */
function onlyWhole(parsed: Parsed): Parsed {
  if (parsed instanceof AppError || parsed.mapped.batch === undefined) return parsed
  return new AppError(
    'invalid_request',
    `the request is a batch of ${parsed.mapped.batch} records, which cannot be replayed: its sender must repeat it`,
  )
}

/** What a replay would do, without writing anything, and the fields of the record that would change. */
export async function previewEntry(
  tx: Tenant,
  webhook: IncomingWebhook,
  entry: ReplayedEntry,
  parsed: Parsed,
): Promise<Preview> {
  return preview(tx, async (tx) => {
    const earlier = await earlierOutcome(tx, webhook, entry)
    return earlier
      ? { ...earlier, changes: {} }
      : tryPayload(tx, webhook, parsed, entry.context, ontoOf(entry), true)
  })
}

/** The same for any payload. */
export const previewPayload = (tx: Tenant, webhook: IncomingWebhook, parsed: Parsed): Promise<Preview> =>
  preview(tx, (tx) => tryPayload(tx, webhook, parsed, null, undefined, true))

/** What would happen. A record and a run that would be created have no id. */
export interface Preview extends Omit<Outcome, 'run_id'> {
  changes: Changes
  starts_workflow: boolean
}

async function preview(tx: Tenant, work: (tx: Tenant) => Promise<Tried>): Promise<Preview> {
  const { run_id, ...tried } = await withoutWriting(tx, work)
  const record_id = tried.outcome === 'created' ? null : tried.record_id
  return { ...tried, record_id, starts_workflow: run_id !== null }
}

type Tried = Outcome & { changes: Changes }

/** By field, as in the history of the record. */
export type Changes = Record<string, { from: unknown; to: unknown }>

/** The record that the request made. */
const ontoOf = ({ status, record_id }: ReplayedEntry) =>
  status === 'Success' ? (record_id ?? undefined) : undefined

/** Claims the delivery, so that a retry of the sender has no effect beside the replay. */
async function earlierOutcome(
  tx: Tenant,
  webhook: IncomingWebhook,
  entry: ReplayedEntry,
): Promise<Outcome | undefined> {
  const { status, action, record_id } = entry
  if (status === 'Success') {
    // A captured sample has no record either, but no equal was accepted.
    const isDuplicate =
      action === 'Skipped' && (record_id !== null || (await acceptedEqual(tx, webhook.id, entry)))
    return isDuplicate ? skipped('the request was a duplicate', record_id) : undefined
  }
  const accepted = await acceptedEqual(tx, webhook.id, entry)
  if (accepted) return skipped(`an equal request was accepted: log entry ${accepted.id}`, accepted.record_id)
  const claim = claimOf(webhook, entry)
  const [claimed] = claim ? await claimFingerprints(tx, webhook.id, [claim]) : []
  return claimed ? skipped('the delivery was accepted already', claimed.record_id) : undefined
}

/** What a retry of the sender would claim; undefined if it would be a new request. */
function claimOf(
  webhook: IncomingWebhook,
  { fingerprint, has_delivery_id }: ReplayedEntry,
): Claim | undefined {
  const window = windowOf(webhook, { has_delivery_id })
  return fingerprint && window > 0 ? { fingerprint, window } : undefined
}

const skipped = (message: string, record_id: string | null): Outcome => ({
  outcome: 'skipped',
  message,
  record_id,
  run_id: null,
  error: null,
  details: {},
  warnings: [],
  mapped_data: null,
})

/** Writes a payload in a savepoint, so that a failure leaves nothing behind. */
async function tryPayload(
  tx: Tenant,
  webhook: IncomingWebhook,
  parsed: Parsed,
  context: RequestContext | null,
  onto: string | undefined,
  withChanges: boolean,
): Promise<Tried> {
  const hidden = parsed instanceof AppError ? undefined : parsed.hidden
  return withoutSecrets(hidden, await tried(tx, webhook, parsed, context, onto, withChanges))
}

async function tried(
  tx: Tenant,
  webhook: IncomingWebhook,
  parsed: Parsed,
  context: RequestContext | null,
  onto: string | undefined,
  withChanges: boolean,
): Promise<Tried> {
  const entity = entityOf(webhook.kind)
  let shown: Mapped | undefined = parsed instanceof AppError ? undefined : parsed.mapped
  try {
    if (parsed instanceof AppError) throw parsed
    const { payload, mapped, hidden } = parsed
    if (mapped.skip && (onto || hasNoEffect(mapped)))
      return { ...skipped(`${mapped.skip}: nothing to write`, null), changes: {} }
    shown = fitted(webhook, mapped)
    const done = await savepoint(tx, async (tx): Promise<Applied> => {
      const actor = { type: 'webhook', id: webhook.id } as const
      const own = { ...tx, actor }
      shown = await withFittingValues(own, webhook, shown!)
      return applyMapped(own, webhook, { payload: hidden?.payload ?? payload, mapped: shown, context }, onto)
    })
    return {
      outcome: done.action,
      message: messageOf(entity, done.action, done.runIds),
      error: null,
      details: {},
      record_id: done.record?.id ?? null,
      run_id: done.runIds[0] ?? null,
      warnings: done.warnings,
      mapped_data: mappedData(webhook.kind, shown, done.runIds),
      changes: withChanges && done.record ? await changesOf(tx, done.record.id) : {},
    }
  } catch (error) {
    const failure = error instanceof AppError ? failureOrMissing(error) : undefined
    if (!failure) throw error
    const { code, message, details = {} } = failure
    return {
      outcome: 'failed',
      message,
      error: code,
      details,
      record_id: null,
      run_id: null,
      changes: {},
      warnings: shown?.warnings ?? [],
      mapped_data: shown ? { entity, ...shown } : null,
    }
  }
}

/** The changes of a record in this transaction, from its history. */
async function changesOf(tx: Tenant, recordId: string): Promise<Changes> {
  const row = await tx
    .trx('record_history')
    .where({ organization_id: tx.organizationId, record_id: recordId })
    .whereRaw("at >= date_trunc('milliseconds', now())")
    .orderBy('version', 'desc')
    .first<{ changes: Changes } | undefined>('changes')
  return row?.changes ?? {}
}

/** A record that the request wrote can have been deleted before its replay. */
const failureOrMissing = (error: AppError) =>
  error.type === 'not_found'
    ? { code: 'validation_failed' as const, message: 'the record of the request does not exist any more' }
    : failureOf(error)

/** Runs `work` in a savepoint that is always rolled back: its statements see their own writes, and nothing remains. */
async function withoutWriting<T>(tx: Tenant, work: (tx: Tenant) => Promise<T>): Promise<T> {
  class Undo extends Error {
    readonly result: T
    constructor(result: T) {
      super('undo')
      this.result = result
    }
  }
  try {
    return await savepoint(tx, async (tx) => {
      throw new Undo(await work({ ...tx, wake() {} }))
    })
  } catch (error) {
    if (error instanceof Undo) return error.result
    throw error
  }
}

/** The log row of a replay: the request of the entry with the result of now. */
function rowOf(
  webhook: IncomingWebhook,
  entry: ReplayedEntry,
  outcome: Outcome,
  replayId: string | null,
  started: number,
): NewLog {
  const { source_ip, headers, content_type, payload, payload_truncated, payload_size } = entry
  const { context, payload_sealed, fingerprint, has_delivery_id } = entry
  const request = {
    webhook_id: webhook.id,
    source_ip,
    headers,
    content_type,
    payload,
    payload_truncated,
    payload_size,
    // The entry keeps it.
    payload_rest: null,
    payload_sealed,
    verified: true,
    context,
    fingerprint,
    has_delivery_id,
  }
  const { message, mapped_data, record_id, run_id, warnings } = outcome
  return logOf(request, {
    response_time_ms: millisecondsSince(started),
    message,
    mapped_data,
    record_id,
    run_id,
    warnings,
    replay_of: entry.id,
    replay_id: replayId,
    ...(outcome.outcome === 'failed'
      ? {
          status: 'Failed',
          http_status: REFUSALS[outcome.error as keyof typeof REFUSALS] ?? 400,
          error: outcome.error,
          error_details: outcome.details,
        }
      : { action: LOG_ACTION_OF[outcome.outcome] }),
  })
}
