import { fitted } from '../model/incoming/fit.ts'
import {
  LOG_ACTION_OF,
  logOf,
  millisecondsSince,
  type NewLog,
  type RequestLog,
} from '../model/incoming/log.ts'
import type { Mapped } from '../model/incoming/mapping/types.ts'
import { mappedData, messageOf } from '../model/incoming/outcome.ts'
import type { Payload } from '../model/incoming/parse-body.ts'
import { type Hidden, withoutSecrets } from '../model/incoming/secret-fields.ts'
import { entityOf } from '../model/incoming/target-entity.ts'
import type { TraceContext } from '../model/trace-context.ts'
import type { Database } from '../postgres/connect.ts'
import { isDatabaseUnavailable, sqlState } from '../postgres/sql-state.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type Failed, settle } from '../records/sets.ts'
import { type Applied, applyAll, withFittingValues } from './apply.ts'
import {
  type Claim,
  claimFingerprints,
  claimsOf,
  type Delivery,
  type DeliveryAnswer,
  type StoredAnswer,
  storeDeliveries,
} from './deliveries.ts'
import { insertLogs } from './logs.ts'
import type { Receiver } from './receiving.ts'

/** A request whose sender is verified, and what the mapping makes of it. */
export interface IncomingRequest {
  payload: Payload
  mapped: Mapped
  hidden?: Hidden | undefined
  trace: TraceContext
  /** `performance.now()` when it arrived. */
  started: number
  log: RequestLog & Omit<Delivery, 'signed'>
  signed?: Buffer | undefined
  /** The warning of its log row and answer if runs could answer its sender, and it does not wait for them. */
  unanswered?: string | undefined
}

/** The body of the answer 200. */
export interface Answer extends DeliveryAnswer {
  success: true
  message: string
  warnings?: string[]
}

/** A request that was written, or repeats one. */
export interface Accepted {
  answer: Answer
  /** The runs that may answer the sender, if the webhook waits for one. */
  runIds: string[]
  isRepeated: boolean
}

/** `mapped`: what was to be written, for the log row of the refusal. */
export type Acceptance = Accepted | { error: unknown; mapped: Mapped }

/**
 * Accepts requests to one webhook: each is validated, found to be new or answered as its earlier delivery, and leaves its
 * record with history and events, its run and its log row. All of them share one transaction. A request that cannot be
 * written fails alone, and leaves nothing.
 * @param before is called in each transaction first, with its requests; what it throws is the error of one that is alone.
 */
export async function accept(
  db: Database,
  webhook: Receiver,
  requests: IncomingRequest[],
  before?: Before,
): Promise<Acceptance[]> {
  const all = await Promise.all(
    requests.map(async (request): Promise<Checked> => {
      const { mapped } = request
      return { request, valid: await settle(() => fitted(webhook, mapped)), written: mapped }
    }),
  )
  const valid = all.filter((one) => !('error' in one.valid))
  const acceptances = new Map(zip(valid, await writeOrHalve(db, webhook, valid, before)))
  for (const one of all)
    if (!acceptances.has(one)) acceptances.set(one, await acceptInvalid(db, webhook, one, before))
  return all.map((one) => acceptances.get(one)!)
}

/** What is written in the transaction of requests beside them. */
export type Before = (tx: Tenant, requests: IncomingRequest[]) => Promise<void>

interface Checked {
  request: IncomingRequest
  /** The mapping with valid values, or why it has others. */
  valid: Mapped | Failed
  /** What was written last, or tried. */
  written: Mapped
}

/** A retry is answered as its first request, which may have been replayed through another mapping. */
async function acceptInvalid(
  db: Database,
  webhook: Receiver,
  one: Checked,
  before: Before | undefined,
): Promise<Acceptance> {
  if (claimsFor(webhook, one).length > 0) return (await writeOrHalve(db, webhook, [one], before))[0]!
  return { error: (one.valid as Failed).error, mapped: one.written }
}

/** Writes requests in one transaction. If one of them cannot be written, halves them, to find those that fail. */
async function writeOrHalve(
  db: Database,
  webhook: Receiver,
  all: Checked[],
  before: Before | undefined,
): Promise<Acceptance[]> {
  if (all.length === 0) return []
  try {
    return await writeInOne(db, webhook, all, before)
  } catch (error) {
    if (!(error instanceof RolledBack)) return all.map(({ written }) => ({ error, mapped: written }))
    if (all.length === 1) return [{ error: error.cause, mapped: all[0]!.written }]
    const half = Math.ceil(all.length / 2)
    return [
      ...(await writeOrHalve(db, webhook, all.slice(0, half), before)),
      ...(await writeOrHalve(db, webhook, all.slice(half), before)),
    ]
  }
}

/** The transaction failed because of its requests, and nothing of it remains. */
class RolledBack extends Error {
  constructor(cause: unknown) {
    super('the transaction was rolled back', { cause })
    this.name = 'RolledBack'
  }
}

/** Throws RolledBack; other errors if the database is unavailable or the outcome unknown: a retry would not help. */
async function writeInOne(
  db: Database,
  webhook: Receiver,
  all: Checked[],
  before: Before | undefined,
): Promise<Accepted[]> {
  let isEnding = false
  try {
    return await db.tenant(webhook.organization_id, { type: 'webhook', id: webhook.id }, async (tx) => {
      isEnding = false
      await before?.(
        tx,
        all.map(({ request }) => request),
      )
      const answers = await write(tx, webhook, all)
      isEnding = true
      return answers
    })
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error
    // A statement that PostgreSQL refused rolls back; of another error during the commit the outcome is unknown.
    throw !isEnding || sqlState(error) ? new RolledBack(error) : error
  }
}

async function write(tx: Tenant, webhook: Receiver, all: Checked[]): Promise<Accepted[]> {
  const earlier = await earlierAnswers(tx, webhook, all)
  const fresh = all.filter((one) => !earlier.has(one))
  for (const one of fresh) {
    if ('error' in one.valid) throw one.valid.error
    one.written = await withFittingValues(tx, webhook, one.valid)
  }
  const applied = await applyAll(
    tx,
    webhook,
    fresh.map(({ request: { payload, hidden, trace, log }, written }) => ({
      payload: hidden?.payload ?? payload,
      mapped: written,
      trace,
      context: log.context,
      mayRepeat: !log.has_delivery_id,
    })),
  )
  const writtenOf = new Map(zip(fresh, applied))
  const done = all.map((one) => {
    const answer = earlier.get(one)?.answer
    return answer ? repeated(answer) : newly(webhook, writtenOf.get(one)!, one.request.unanswered)
  })
  // Also for an earlier answer: the request may have another id, or another time, than the first one.
  await storeDeliveries(
    tx,
    webhook.id,
    zip(all, done).flatMap(([one, { answer, runIds }]) =>
      (earlier.get(one)?.unanswered ?? claimsFor(webhook, one)).map(({ fingerprint }) => ({
        fingerprint,
        answer: runIds.length > 0 ? { ...answer, run_ids: runIds } : answer,
      })),
    ),
  )
  await insertLogs(
    tx,
    zip(all, done).map(([one, its]) => rowOf(webhook, one, its)),
  )
  return zip(all, done).map(([one, { answer, message, warnings, runIds }]) => ({
    answer: { success: true, message, ...answer, ...(warnings.length > 0 ? { warnings } : {}) },
    runIds,
    isRepeated: earlier.has(one),
  }))
}

/** A request that was received before, and its claims that have no answer yet. */
interface Earlier {
  answer: StoredAnswer
  unanswered: Claim[]
}

/** Claims the deliveries. @returns those that were received before. */
async function earlierAnswers(tx: Tenant, webhook: Receiver, all: Checked[]): Promise<Map<Checked, Earlier>> {
  const known = all.flatMap((one) => claimsFor(webhook, one).map((claim) => ({ one, claim })))
  const answers = await claimFingerprints(
    tx,
    webhook.id,
    known.map(({ claim }) => claim),
  )
  const earlier = new Map<Checked, Earlier>()
  for (const [{ one }, answer] of zip(known, answers))
    if (answer && !earlier.has(one)) earlier.set(one, { answer, unanswered: [] })
  for (const [{ one, claim }, answer] of zip(known, answers))
    if (!answer) earlier.get(one)?.unanswered.push(claim)
  return earlier
}

const claimsFor = (webhook: Receiver, { request: { log, signed } }: Checked): Claim[] =>
  claimsOf(webhook, { ...log, ...(signed && { signed }) })

/** What a request did. */
interface Done {
  answer: DeliveryAnswer
  message: string
  warnings: string[]
  /** The runs that may answer the sender. */
  runIds: string[]
  /** The runs that the request has started. */
  started: string[]
  /** In the log row. */
  outcome: Pick<NewLog, 'action' | 'warnings' | 'run_id'>
}

const repeated = ({ run_ids = [], ...answer }: StoredAnswer): Done => ({
  answer,
  runIds: run_ids,
  started: [],
  message: 'already received',
  warnings: [],
  outcome: { action: 'Skipped', run_id: null, warnings: ['duplicate delivery: nothing was written'] },
})

function newly(
  { kind, response_wait }: Receiver,
  { record, action, runIds, warnings: found }: Applied,
  unanswered: string | undefined,
): Done {
  const entity = entityOf(kind)
  const answering = response_wait > 0 ? runIds : []
  const warnings = unanswered !== undefined && answering.length > 0 ? [...found, unanswered] : found
  return {
    answer: { record_id: record?.id ?? null, entity, action },
    message: messageOf(entity, action, runIds),
    warnings,
    outcome: { action: LOG_ACTION_OF[action], run_id: runIds[0] ?? null, warnings },
    runIds: answering,
    started: runIds,
  }
}

const rowOf = (
  { kind }: Receiver,
  { request, written }: Checked,
  { answer, message, outcome, started }: Done,
): NewLog =>
  withoutSecrets(
    request.hidden,
    logOf(request.log, {
      response_time_ms: millisecondsSince(request.started),
      mapped_data: mappedData(kind, written, started),
      record_id: answer.record_id,
      message,
      ...outcome,
    }),
  )

const zip = <A, B>(some: A[], others: B[]): [A, B][] => some.map((one, i) => [one, others[i]!])
