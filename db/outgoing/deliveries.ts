import { notFound } from '../errors.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Page } from '../lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { DeliveryStatus, HeldFor } from './moves/statuses.ts'

/** A delivery as lists show it. */
export interface Delivery {
  id: string
  webhook_id: string
  event_id: string
  event: string
  test: boolean
  /** The number of earlier resends of the event. */
  generation: number
  status: DeliveryStatus
  held_for: HeldFor | null
  attempt_count: number
  next_attempt_at: Date | null
  error: string | null
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}

/** `unknown`: in progress or interrupted. It does not count as one of the attempts that the retry schedule allows. */
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
  attempts: Attempt[]
}

export interface DeliveryFilter {
  status?: DeliveryStatus | undefined
  event?: string | undefined
}

const SHOWN = [
  ...[
    'd.id',
    'd.webhook_id',
    'd.event_id',
    'e.name as event',
    'd.test',
    'd.generation',
    'd.status',
    'd.held_for',
  ],
  ...[
    'd.attempts as attempt_count',
    'd.next_attempt_at',
    'd.error',
    'd.created_at',
    'd.started_at',
    'd.ended_at',
  ],
]

const withEvents = (tx: Tenant) =>
  tx
    .trx('deliveries as d')
    .join('events as e', (on) => on.on('e.organization_id', 'd.organization_id').andOn('e.id', 'd.event_id'))
    .where('d.organization_id', tx.organizationId)

/** Deliveries of an endpoint, newest first. */
export function listDeliveries(
  tx: Tenant,
  webhookId: string,
  filter: DeliveryFilter,
  page: IdPage,
): Promise<Page<Delivery>> {
  const found = withEvents(tx).where('d.webhook_id', webhookId).select(SHOWN)
  if (filter.status) found.where('d.status', filter.status)
  if (filter.event) found.where('e.name', filter.event)
  // A derived table, so that `id` is unambiguous.
  const rows = tx.trx.from(found.as('shown')).select('*')
  return pageById(tx, rows, page, { of: ['deliveries', webhookId, filter] })
}

/** Throws not_found. */
export async function getDelivery(tx: Tenant, id: string): Promise<DeliveryDetails> {
  const row = await withEvents(tx)
    .where('d.id', id)
    .first<Omit<DeliveryDetails, 'attempts'> | undefined>(...SHOWN, 'e.data', 'e.previous')
  if (!row) throw notFound('delivery')
  const attempts = await tx
    .trx('delivery_attempts')
    .where({ organization_id: tx.organizationId, delivery_id: id })
    .orderBy('attempt')
    .select<Attempt[]>(
      ...['attempt', 'status', 'started_at', 'http_status', 'duration_ms'],
      ...['response_headers', 'response_body', 'error'],
    )
  return { ...row, attempts }
}
