import { conflict } from '../model/errors.ts'
import type { ReplayStatus } from '../model/replays/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { replaysIn } from '../queue/replays.ts'
import { insertDeliveries } from './moves/queue.ts'
import { chargeDeliveries } from './quota.ts'
import { countCandidates, MAX_REPLAY, type Period, readCandidates } from './replay-candidates.ts'

/**
 * Replays: an endpoint is sent again what failed, and sent what it missed, in a period. Workers create the deliveries in
 * pages; a page and the position behind it are one transaction, so that each event is replayed once.
 */

export interface Replay extends Period {
  id: string
  webhook_id: string
  status: ReplayStatus
  total: number
  /** Deliveries that were created. */
  created: number
  /** Events that needed none by then, or that the condition of the endpoint excludes. */
  skipped: number
  created_at: Date
  ended_at: Date | null
}

/** A replay waits while its endpoint has so many queued deliveries, so that pausing and stopping it have an effect. */
const MAX_QUEUED = 200

interface Progress extends Period {
  webhook_id: string
  position: string | null
}

const { startReplay, lockRunning, ...life } = replaysIn<Replay, Progress>({
  table: 'outgoing_replays',
  webhooks: 'outgoing_webhooks',
  channel: 'agx_outgoing_replays',
  shown: [
    'id',
    'webhook_id',
    'include',
    'since',
    'until',
    'status',
    'total',
    'created',
    'skipped',
    'created_at',
    'ended_at',
  ],
  inactiveHint: 'activate it: that sends its held deliveries, too',
  progress: ['webhook_id', 'include', 'since', 'until', 'position'],
  canAdvance: `(select count(*) from (
    select from deliveries d where d.organization_id = r.organization_id and d.webhook_id = r.webhook_id
      and d.status = 'queued' limit ${MAX_QUEUED}) q) < ${MAX_QUEUED}`,
})
export const { getReplay, setReplayStatus, recordPage, replays: outgoingReplays } = life

/** The number of events that a replay would have now. Throws not_found; conflict above MAX_REPLAY. */
export async function previewReplay(tx: Tenant, webhookId: string, period: Period): Promise<number> {
  const count = await countCandidates(tx, webhookId, period)
  if (count > MAX_REPLAY)
    throw conflict(`more than ${MAX_REPLAY} events match`, { param: 'since', hint: 'give a shorter period' })
  return count
}

/** Throws as `previewReplay`, and conflict if the endpoint is Inactive or has an open replay. @returns its id. */
export const createReplay = (tx: Tenant, webhookId: string, period: Period): Promise<string> =>
  startReplay(tx, webhookId, async () => ({
    ...period,
    total: await previewReplay(tx, webhookId, period),
  }))

/** Creates the deliveries of the next page, and completes the replay after the last one. */
export async function advanceReplay(tx: Tenant, id: string): Promise<void> {
  const { organizationId: organization_id } = tx
  const replay = await lockRunning(tx, id)
  if (!replay) return
  const { candidates, skipped, position } = await readCandidates(
    tx,
    replay.webhook_id,
    replay,
    replay.position,
  )
  const granted = await chargeDeliveries(tx.trx, organization_id, candidates.length)
  const queued = await insertDeliveries(
    tx.trx,
    candidates.map(({ event_id, subject_id, generation }, place) => ({
      organization_id,
      webhook_id: replay.webhook_id,
      event_id,
      subject_id,
      generation,
      active: true,
      charged: place < granted,
    })),
  )
  if (queued > 0) tx.wake('agx_deliveries')
  const counts = { created: candidates.length, skipped }
  await life.recordPage(
    tx,
    id,
    position === undefined ? { counts, status: 'completed' } : { counts, position },
  )
}
