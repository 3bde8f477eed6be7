import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Acknowledged, Ledger } from './ledger.ts'
import type { Target } from './target.ts'

/** One operation of a client. It adds acknowledged objects to the ledger, and throws if it gives up. */
export type Operation = (load: Load) => Promise<void>

export interface Load {
  target: Target
  ledger: Ledger
  /** What operations have begun and not ended: the load is over when all have. */
  begun: Promise<void>[]
  /** A failed request is repeated until the response is 2xx or a refusal, or until this signal. */
  giveUp: AbortSignal
}

const RETRY_MS = 250
/** A client repeats its request if it gets no response within this time. */
const ANSWER_MS = 10_000

/** A response other than 2xx. */
class Refusal extends Error {
  /** Whether the same request would be refused again. Not for 409 (in progress) and 429 (a limit). */
  readonly isFinal: boolean

  constructor(message: string, status: number) {
    super(message)
    this.isFinal = status >= 400 && status < 500 && status !== 409 && status !== 429
  }
}

/**
 * Sends a request as a careful client does: it repeats a failed request with the same idempotency key, to each api in
 * turn.
 * @returns the body of the 2xx.
 */
async function send<Answer = Record<string, string>>(
  { target, ledger, giveUp }: Load,
  path: string,
  body?: object,
  headers: Record<string, string> = target.headers,
): Promise<Answer> {
  const id = randomUUID()
  const keyed = { ...headers, 'idempotency-key': id }
  for (let attempt = Math.floor(Math.random() * target.apiUrls.length); ; attempt++) {
    const apiUrl = target.apiUrls[attempt % target.apiUrls.length]!
    try {
      const answer = await fetch(apiUrl + path, {
        method: body ? 'POST' : 'GET',
        headers: body ? keyed : headers,
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      const parsed = (await answer.json()) as Answer
      if (answer.ok) return parsed
      throw new Refusal(`${path}: ${answer.status} ${JSON.stringify(parsed)}`, answer.status)
    } catch (error) {
      ledger.failures++
      const final = error instanceof Refusal && error.isFinal
      if (final || giveUp.aborted) {
        ledger.abandoned.push(`${error}`)
        throw error
      }
      await pause(RETRY_MS)
    }
  }
}

const acknowledged = (id: string): Acknowledged => ({ id, at: Date.now() })

export const createContact: Operation = async (load) => {
  const contact = { first_name: 'Load', email: `${randomUUID()}@a.example` }
  const { id } = await send(load, '/v1/objects/contacts', contact)
  load.ledger.contacts.push(acknowledged(id!))
}

/** Number of contacts of one batch. */
const BATCH = 100

/** Creates contacts in batches, one after the other. */
export async function createContacts(load: Load, count: number): Promise<void> {
  for (let made = 0; made < count; made += BATCH) {
    const operations = Array.from({ length: Math.min(BATCH, count - made) }, () => ({
      op: 'create',
      data: { first_name: 'Load', email: `${randomUUID()}@a.example` },
    }))
    const { results } = await send<{ results: { id: string }[] }>(load, '/v1/objects/contacts/batch', {
      operations,
    })
    load.ledger.contacts.push(...results.map(({ id }) => acknowledged(id)))
  }
}

export const readContact: Operation = async (load) => {
  const { contacts } = load.ledger
  const one = contacts[Math.floor(Math.random() * contacts.length)]
  await send(load, one ? `/v1/objects/contacts/${one.id}` : '/v1/objects/contacts?limit=1')
}

export const listContacts: Operation = async (load) =>
  void (await send(load, '/v1/objects/contacts?limit=50'))

export const listRuns: Operation = async (load) => void (await send(load, '/v1/runs?limit=50'))

const startByName = async (load: Load, name: string) =>
  (await send(load, '/v1/workflows/run-by-name', { name, inputs: {}, confirm: true })).run_id!

export const startRun: Operation = async (load) => void (await startLoadRun(load))

/** @returns the id of the run. */
export async function startLoadRun(load: Load): Promise<string> {
  const id = await startByName(load, 'Load')
  load.ledger.runs.push(acknowledged(id))
  return id
}

/** @returns the id of a run that ends in its first segment. */
export const startQuickRun = (load: Load): Promise<string> => startByName(load, 'Quick')

/** Queues runs that end in their first segment, `atOnce` at a time. */
export async function startBacklog(load: Load, count: number, atOnce: number): Promise<void> {
  let left = count
  const start = async () => {
    while (left-- > 0) load.ledger.backlog.push(acknowledged(await startQuickRun(load)))
  }
  await Promise.all(Array.from({ length: atOnce }, start))
}

/** @returns the id of a run of `Many calls`. */
export async function startManyCalls(load: Load): Promise<string> {
  const id = await startByName(load, 'Many calls')
  load.ledger.manyCalls.push(acknowledged(id))
  return id
}

/** Starts a run that would take a month, and cancels it. */
export const cancelRun: Operation = async (load) => {
  const id = await startByName(load, 'Long')
  // Random, so that many cancellations meet a run that has started.
  await pause(Math.random() * 500)
  await cancelRunById(load, id)
  load.ledger.cancelled.push(acknowledged(id))
}

export const cancelRunById = async (load: Load, id: string) => send(load, `/v1/runs/${id}/cancel`, {})

/** Starts a run that asks, and answers beside the other operations: the run may begin late. */
export const answerRun: Operation = async (load) => {
  const id = await startByName(load, 'Asks')
  // The ledger counts abandoned requests.
  load.begun.push(answerRunById(load, id).catch(() => {}))
}

/** Answers a run of the workflow `Asks` once it asks. */
export async function answerRunById(load: Load, id: string): Promise<void> {
  for (; ; await pause(RETRY_MS)) {
    const { status, waits } = await send<{ status: string; waits: Wait[] }>(load, `/v1/runs/${id}`)
    const approval = waits[0]?.approval
    if (approval) {
      await send(load, `/v1/runs/${id}/signal`, { approval_id: approval.id, decision: 'approved' })
      load.ledger.answered.push(acknowledged(id))
    }
    if (approval || status === 'completed') return
    if (load.giveUp.aborted) throw new Error(`run ${id} does not ask`)
  }
}

type Wait = { approval?: { id: string } | null }

/** @returns the id of a run that waits for the signals `first` and `second`. */
export const startWaitingRun = (load: Load): Promise<string> => startByName(load, 'Waiting')

export const signalRun = async (load: Load, id: string, name: string) =>
  send(load, `/v1/runs/${id}/signal`, { name })

export const pauseRunById = async (load: Load, id: string) => send(load, `/v1/runs/${id}/pause`, {})

export const resumeRunById = async (load: Load, id: string) => send(load, `/v1/runs/${id}/resume`, {})

export const statusOf = async (load: Load, id: string) => (await send(load, `/v1/runs/${id}`)).status!

export const receiveWebhook: Operation = async (load) => {
  const { path, secret } = load.target.incoming
  const body = { first_name: 'Form', email: `${randomUUID()}@b.example` }
  const headers = { 'content-type': 'application/json', 'x-webhook-secret': secret }
  load.ledger.received.push(acknowledged((await send(load, path, body, headers)).record_id!))
}
