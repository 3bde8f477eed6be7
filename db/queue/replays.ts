import { v7 as uuidv7 } from 'uuid'
import { conflict, notFound } from '../model/errors.ts'
import type { Channel, System, Tenant } from '../postgres/tenancy.ts'
import { endLeases, leaseRows } from './lease.ts'

/**
 * The life cycle of replays, of incoming and of outgoing webhooks: running, paused and running again, until they are
 * stopped or completed. A webhook has one open replay at most. Workers advance the running ones, in turns.
 */

export const REPLAY_STATUSES = ['running', 'paused', 'stopped', 'completed'] as const
export type ReplayStatus = (typeof REPLAY_STATUSES)[number]

/** A replay that a worker has leased. */
export interface ClaimedReplay {
  organization_id: string
  id: string
}

interface Sort {
  table: 'incoming_replays' | 'outgoing_replays'
  webhooks: 'incoming_webhooks' | 'outgoing_webhooks'
  channel: Channel
  /** The columns that clients see. */
  shown: string[]
  /** What to do about an Inactive webhook. */
  inactiveHint: string
  /** What a change of the status by a person resets. */
  cleared?: Record<string, null>
  /** SQL: whether the replay `r` can go on now. */
  canAdvance?: string
}

/** Longer than a turn of a worker. */
const LEASE_SECONDS = 15

/** The statements of one sort of replays. */
export function replaysIn<Replay extends { status: ReplayStatus }>(sort: Sort) {
  const { table, webhooks, channel, shown, inactiveHint, cleared = {}, canAdvance = 'true' } = sort

  /** Serializes concurrent creations. Throws not_found; conflict if the webhook is Inactive. */
  async function lockActive(tx: Tenant, webhookId: string): Promise<void> {
    const webhook = await tx
      .trx(webhooks)
      .where({ organization_id: tx.organizationId, id: webhookId })
      .forNoKeyUpdate()
      .first<{ status: string } | undefined>('status')
    if (!webhook) throw notFound('webhook')
    if (webhook.status !== 'Active') throw conflict('the webhook is inactive', { hint: inactiveHint })
  }

  const insertReplay = (tx: Tenant, id: string, webhookId: string, values: object) =>
    tx.trx(table).insert({
      organization_id: tx.organizationId,
      id,
      webhook_id: webhookId,
      ...values,
      created_by: JSON.stringify(tx.actor),
    })

  /**
   * Creates a running replay with the columns of `values`, which is called once no other can be created. Throws as
   * `lockActive`, and conflict if the webhook has an open replay. @returns its id.
   */
  async function startReplay(tx: Tenant, webhookId: string, values: () => Promise<object>): Promise<string> {
    await lockActive(tx, webhookId)
    const open = await tx
      .trx(table)
      .where({ organization_id: tx.organizationId, webhook_id: webhookId, ended_at: null })
      .first<{ id: string } | undefined>('id')
    if (open) throw conflict('the webhook has an open replay', { hint: `stop the replay ${open.id} first` })
    const id = uuidv7()
    await insertReplay(tx, id, webhookId, await values())
    tx.wake(channel)
    return id
  }

  /** Throws not_found. */
  async function getReplay(tx: Tenant, webhookId: string, id: string): Promise<Replay> {
    const row = (await tx
      .trx(table)
      .where({ organization_id: tx.organizationId, webhook_id: webhookId, id })
      .first(shown)) as Replay | undefined
    if (!row) throw notFound('replay')
    return row
  }

  /** Pauses, resumes or stops an open replay. What it did so far stays. Throws not_found; conflict if it has ended. */
  async function setReplayStatus(
    tx: Tenant,
    webhookId: string,
    id: string,
    status: Exclude<ReplayStatus, 'completed'>,
  ): Promise<Replay> {
    const count = await tx
      .trx(table)
      .where({ organization_id: tx.organizationId, webhook_id: webhookId, id, ended_at: null })
      .update({ status, ...cleared, ...(status === 'stopped' ? { ended_at: tx.trx.fn.now() } : {}) })
    const replay = await getReplay(tx, webhookId, id)
    if (count === 0)
      throw conflict(`the replay has already ${replay.status === 'stopped' ? 'been stopped' : 'completed'}`)
    tx.wake(channel)
    return replay
  }

  /** Leases up to `limit` running replays of Active webhooks that can go on, the oldest first. */
  const claimReplays = (system: System, limit: number): Promise<ClaimedReplay[]> =>
    leaseRows(system, limit, {
      table,
      key: 'organization_id, id',
      waits: `r.status = 'running' and (
        select w.status from ${webhooks} w where w.organization_id = r.organization_id and w.id = r.webhook_id
      ) = 'Active' and ${canAdvance}`,
      order: 'created_at',
      returning: 'organization_id, id',
      seconds: LEASE_SECONDS,
    })

  /** Ends the leases of these replays. */
  const releaseReplays = (system: System, replays: ClaimedReplay[]): Promise<void> =>
    endLeases(system, table, replays)

  return { lockActive, insertReplay, startReplay, getReplay, setReplayStatus, claimReplays, releaseReplays }
}
