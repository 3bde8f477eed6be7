import { v7 as uuidv7 } from 'uuid'
import { conflict, notFound } from '../model/errors.ts'
import type { ReplayStatus } from '../model/replays/statuses.ts'
import type { Channel, Tenant } from '../postgres/tenancy.ts'
import { definePagedJobs } from './paged-jobs.ts'

/** The status changes of replays of incoming and outgoing webhooks; the table is in `db/model/replays/statuses.ts`. */

interface Sort<Progress> {
  table: 'incoming_replays' | 'outgoing_replays'
  webhooks: 'incoming_webhooks' | 'outgoing_webhooks'
  channel: Channel
  /** The columns that clients see. */
  shown: string[]
  /** What to do about an Inactive webhook. */
  inactiveHint: string
  /** What a change of the status by a person resets. */
  cleared?: Record<string, null>
  /** What a page reads of the replay. */
  progress: (keyof Progress & string)[]
  /** SQL: whether the replay `r` can go on now. */
  canAdvance?: string
}

/** What a page changes. */
interface Page {
  /** What was replayed last. */
  position?: string
  /** How much each of these columns grows. */
  counts?: Record<string, number>
  status?: 'paused' | 'completed'
  /** Why it is paused. */
  problem?: string
}

/** The statements of one sort of replays. */
export function replaysIn<
  Replay extends { status: ReplayStatus },
  Progress extends { position: string | null },
>(sort: Sort<Progress>) {
  const { table, webhooks, channel, shown, inactiveHint, cleared = {}, progress, canAdvance = 'true' } = sort

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

  /** Running replays of Active webhooks that can go on. */
  const replays = definePagedJobs(
    table,
    `status = 'running' and ${canAdvance} and (
       select w.status from ${webhooks} w
       where w.organization_id = r.organization_id and w.id = r.webhook_id) = 'Active'`,
    2,
  )

  const running = (tx: Tenant, id: string) =>
    tx.trx(table).where({ organization_id: tx.organizationId, id, status: 'running' })

  /** What a page reads; undefined if the replay is not running. */
  const readRunning = (tx: Tenant, id: string): Promise<Progress | undefined> =>
    running(tx, id).first<never>(progress)

  /** As `readRunning`. Other pages of the replay, and changes of its status, wait. */
  const lockRunning = (tx: Tenant, id: string): Promise<Progress | undefined> =>
    running(tx, id).forUpdate().first<never>(progress)

  /** Records a page, after `lockRunning`. @returns false if the replay is not running. */
  async function recordPage(tx: Tenant, id: string, { counts = {}, ...page }: Page): Promise<boolean> {
    const grown = Object.entries(counts).map(([column, by]) => [column, tx.trx.raw('?? + ?', [column, by])])
    const count = await running(tx, id).update({
      ...page,
      ...Object.fromEntries(grown),
      ...(page.status === 'completed' && { ended_at: tx.trx.fn.now() }),
    })
    return count > 0
  }

  return {
    replays,
    lockActive,
    insertReplay,
    startReplay,
    getReplay,
    setReplayStatus,
    readRunning,
    lockRunning,
    recordPage,
  }
}
