import { type IdPage, pageById } from '../lists/id-list.ts'
import { notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import type { DeliveryStatus, HeldFor } from '../model/outgoing/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { traceText } from '../postgres/trace.ts'
import { firstIdAt } from '../retention/purge.ts'

/** A delivery in a list. */
export interface Delivery {
  id: string
  webhook_id: string
  event_id: string
  event: string
  /** The record of the event. */
  record_id: string | null
  test: boolean
  /** The number of earlier resends of the event. */
  generation: number
  status: DeliveryStatus
  held_for: HeldFor | null
  attempt_count: number
  /** The status of the last attempt with a response. */
  http_status: number | null
  next_attempt_at: Date | null
  error: string | null
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}

/** `unknown`: in progress or interrupted; it does not count as an attempt of the retry schedule. */
export const ATTEMPT_STATUSES = ['unknown', 'succeeded', 'failed'] as const
export type AttemptStatus = (typeof ATTEMPT_STATUSES)[number]

export interface Attempt {
  attempt: number
  status: AttemptStatus
  started_at: Date
  http_status: number | null
  duration_ms: number | null
  response_headers: Record<string, string> | null
  response_body: string | null
  error: string | null
}

export interface DeliveryDetails extends Delivery {
  data: Record<string, unknown>
  previous: Record<string, unknown> | null
  /** The trace of the event; each attempt passes it on. */
  trace_id: string
  attempts: Attempt[]
}

/** The filter of the log. `code`: an HTTP status, or a class such as `5xx`, of the last attempt with a response. */
export interface DeliveryFilter {
  status?: DeliveryStatus | undefined
  /** An event name, `<entity>.*` or `*`. */
  event?: string | undefined
  code?: string | undefined
  record_id?: string | undefined
  /** Lower bound of the creation time, inclusive. */
  from?: Date | undefined
  to?: Date | undefined
}

/** SQL: the HTTP status of the last attempt of the delivery `d` with a response. */
const LAST_CODE = `(
  select a.http_status from delivery_attempts a
  where a.organization_id = d.organization_id and a.delivery_id = d.id and a.http_status is not null
  order by a.attempt desc limit 1)`

const SHOWN = [
  'd.id',
  'd.webhook_id',
  'd.event_id',
  'e.name as event',
  'd.subject_id as record_id',
  'd.test',
  'd.generation',
  'd.status',
  'd.held_for',
  'd.attempts as attempt_count',
  'd.next_attempt_at',
  'd.error',
  'd.created_at',
  'd.started_at',
  'd.ended_at',
]

const TIME = 'cast(? as timestamptz)'
/** Maximum difference between the clock of a process, which creates ids, and that of the database. */
const CLOCKS = `interval '1 minute'`

const shownCode = (tx: Tenant) => tx.trx.raw(`${LAST_CODE} as http_status`)

/**
 * An outer join, although each delivery has its event: for an inner join the planner expects few rows, and reads all of
 * them.
 */
const withEvents = (tx: Tenant) =>
  tx
    .trx('deliveries as d')
    .leftJoin('events as e', (on) =>
      on.on('e.organization_id', 'd.organization_id').andOn('e.id', 'd.event_id'),
    )
    .where('d.organization_id', tx.organizationId)

/** Deliveries of an endpoint, or of all endpoints, newest first. */
export function listDeliveries(
  tx: Tenant,
  webhookId: string | undefined,
  filter: DeliveryFilter,
  page: IdPage,
): Promise<Page<Delivery>> {
  const found = withEvents(tx).select(SHOWN).select(shownCode(tx))
  if (webhookId) found.where('d.webhook_id', webhookId)
  if (filter.status) found.where('d.status', filter.status)
  const { event } = filter
  if (event?.endsWith('.*')) found.whereRaw(`split_part(e.name, '.', 1) = ?`, [event.slice(0, -2)])
  else if (event && event !== '*') found.where('e.name', event)
  if (filter.record_id) found.where('d.subject_id', filter.record_id)
  const { from, to } = filter
  if (from)
    found.whereRaw(`d.id >= ${firstIdAt(`${TIME} - ${CLOCKS}`)} and d.created_at >= ${TIME}`, [from, from])
  if (to) found.whereRaw(`d.id < ${firstIdAt(`${TIME} + ${CLOCKS}`)} and d.created_at <= ${TIME}`, [to, to])
  if (filter.code) {
    const [least, most] = /^[1-5]xx$/.test(filter.code)
      ? [Number(filter.code[0]) * 100, Number(filter.code[0]) * 100 + 99]
      : [Number(filter.code), Number(filter.code)]
    found.whereRaw(`${LAST_CODE} between ? and ?`, [least, most])
  }
  // A derived table, so that `id` is unambiguous.
  const rows = tx.trx.from(found.as('shown')).select('*')
  return pageById(tx, rows, page, { of: ['deliveries', webhookId, filter] })
}

/** Deliveries by their ids. */
export async function deliverySummaries(tx: Tenant, ids: string[]): Promise<Map<string, Delivery>> {
  const rows = await withEvents(tx).whereIn('d.id', ids).select(SHOWN).select(shownCode(tx))
  return new Map((rows as Delivery[]).map((delivery) => [delivery.id, delivery]))
}

/** The name of the event of a delivery, and whether it is a test. Throws not_found. */
export async function eventOfDelivery(tx: Tenant, id: string): Promise<Pick<Delivery, 'event' | 'test'>> {
  const row = await withEvents(tx).where('d.id', id).first('e.name as event', 'd.test')
  if (!row) throw notFound('delivery')
  return row
}

/** Throws not_found. */
export async function getDelivery(tx: Tenant, id: string): Promise<DeliveryDetails> {
  const row = await withEvents(tx)
    .where('d.id', id)
    .first<Omit<DeliveryDetails, 'attempts'> | undefined>(
      ...SHOWN,
      'e.data',
      'e.previous',
      shownCode(tx),
      tx.trx.raw(`${traceText('e.trace_id')} as trace_id`),
    )
  if (!row) throw notFound('delivery')
  const attempts = await tx
    .trx('delivery_attempts')
    .where({ organization_id: tx.organizationId, delivery_id: id })
    .orderBy('attempt')
    .select<Attempt[]>(
      'attempt',
      'status',
      'started_at',
      'http_status',
      'duration_ms',
      'response_headers',
      'response_body',
      'error',
    )
  return { ...row, attempts }
}
