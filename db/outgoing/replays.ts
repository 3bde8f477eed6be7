import { v7 as uuidv7 } from 'uuid'
import { conflict, notFound } from '../errors.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { insertDeliveries } from './moves/queue.ts'
import { chargeDeliveries } from './quota.ts'
import { countCandidates, MAX_REPLAY, type Period, readCandidates } from './replay-candidates.ts'

/**
 * Replays: an endpoint is sent again what failed, and sent what it missed, in a period. Workers create the deliveries in
 * pages; a page and the position behind it are one transaction, so that each event is replayed once.
 */

export const REPLAY_STATUSES = ['running', 'paused', 'stopped', 'completed'] as const
export type ReplayStatus = (typeof REPLAY_STATUSES)[number]

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

const SHOWN = [
  ...['id', 'webhook_id', 'include', 'since', 'until', 'status', 'total', 'created', 'skipped'],
  ...['created_at', 'ended_at'],
]

/** The number of events that a replay would have now. Throws not_found; conflict above MAX_REPLAY. */
export async function previewReplay(tx: Tenant, webhookId: string, period: Period): Promise<number> {
  const count = await countCandidates(tx, webhookId, period)
  if (count > MAX_REPLAY)
    throw conflict(`more than ${MAX_REPLAY} events match`, { param: 'since', hint: 'give a shorter period' })
  return count
}

/** Throws as `previewReplay`, and conflict if the endpoint is Inactive or has an open replay. @returns its id. */
export async function createReplay(tx: Tenant, webhookId: string, period: Period): Promise<string> {
  // Serializes concurrent creations.
  const webhook = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id: webhookId })
    .forNoKeyUpdate()
    .first<{ status: string } | undefined>('status')
  if (!webhook) throw notFound('webhook')
  if (webhook.status !== 'Active')
    throw conflict('the webhook is inactive', { hint: 'activate it: that sends its held deliveries, too' })
  const open = await tx
    .trx('outgoing_replays')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, ended_at: null })
    .first<{ id: string } | undefined>('id')
  if (open) throw conflict('the webhook has an open replay', { hint: `stop the replay ${open.id} first` })
  const total = await previewReplay(tx, webhookId, period)
  const id = uuidv7()
  await tx.trx('outgoing_replays').insert({
    ...{ organization_id: tx.organizationId, id, webhook_id: webhookId, ...period, total },
    created_by: JSON.stringify(tx.actor),
  })
  tx.wake('agx_outgoing_replays')
  return id
}

/** Throws not_found. */
export async function getReplay(tx: Tenant, webhookId: string, id: string): Promise<Replay> {
  const row = await tx
    .trx('outgoing_replays')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, id })
    .first<Replay | undefined>(SHOWN)
  if (!row) throw notFound('replay')
  return row
}

/** Pauses, resumes or stops an open replay; its deliveries so far stay. Throws not_found; conflict if it has ended. */
export async function setReplayStatus(
  tx: Tenant,
  webhookId: string,
  id: string,
  status: 'running' | 'paused' | 'stopped',
): Promise<Replay> {
  const count = await tx
    .trx('outgoing_replays')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, id, ended_at: null })
    .update({ status, ...(status === 'stopped' ? { ended_at: tx.trx.fn.now() } : {}) })
  const replay = await getReplay(tx, webhookId, id)
  if (count === 0)
    throw conflict(`the replay has already ${replay.status === 'stopped' ? 'been stopped' : 'completed'}`)
  tx.wake('agx_outgoing_replays')
  return replay
}

export interface ClaimedReplay {
  organization_id: string
  id: string
}

/** A replay waits while its endpoint has so many queued deliveries, so that pausing and stopping it have an effect. */
const MAX_QUEUED = 200
const LEASE = `interval '15 seconds'`

/** Leases up to `limit` running replays of Active endpoints whose queue has room, the oldest first. */
export async function claimReplays(system: System, limit: number): Promise<ClaimedReplay[]> {
  const { rows } = await system.raw<{ rows: ClaimedReplay[] }>(
    `update outgoing_replays set lease_until = now() + ${LEASE}
     where (organization_id, id) in (
       select r.organization_id, r.id from outgoing_replays r
       join outgoing_webhooks w on w.organization_id = r.organization_id and w.id = r.webhook_id
       where r.status = 'running' and (r.lease_until is null or r.lease_until < now()) and w.status = 'Active'
         and (select count(*) from (
           select from deliveries d where d.organization_id = r.organization_id and d.webhook_id = r.webhook_id
             and d.status = 'queued' limit ${MAX_QUEUED}) q) < ${MAX_QUEUED}
       order by r.created_at limit ? for update of r skip locked)
     returning organization_id, id`,
    [limit],
  )
  return rows
}

/** Ends the leases of these replays. */
export async function releaseReplays(system: System, replays: ClaimedReplay[]): Promise<void> {
  await system('outgoing_replays')
    .whereIn(
      ['organization_id', 'id'],
      replays.map(({ organization_id, id }) => [organization_id, id]),
    )
    .update({ lease_until: null })
}

interface Progress extends Period {
  webhook_id: string
  position: string | null
}

/** Creates the deliveries of the next page, and completes the replay after the last one. */
export async function advanceReplay(tx: Tenant, id: string): Promise<void> {
  const { organizationId: organization_id } = tx
  const row = () => tx.trx('outgoing_replays').where({ organization_id, id })
  const replay = await row()
    .where({ status: 'running' })
    .forUpdate()
    .first<Progress | undefined>('webhook_id', 'include', 'since', 'until', 'position')
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
      ...{ organization_id, webhook_id: replay.webhook_id, event_id, subject_id, generation },
      active: true,
      charged: place < granted,
    })),
  )
  if (queued > 0) tx.wake('agx_deliveries')
  await row().update({
    created: tx.trx.raw('created + ?', [candidates.length]),
    skipped: tx.trx.raw('skipped + ?', [skipped]),
    ...(position === undefined
      ? { status: 'completed', ended_at: tx.trx.fn.now() }
      : { position, lease_until: null }),
  })
}
