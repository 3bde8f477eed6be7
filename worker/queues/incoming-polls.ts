import { LOGIN_FAILED } from '../../activities/mail/mailbox.ts'
import {
  endPoll,
  incomingPolls,
  markItems,
  type PollEnd,
  type PolledReceiver,
  type PollState,
  RENEW_MS,
  readPolled,
  renewPoll,
  savePollState,
  unmarked,
} from '../../db/incoming/polls.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { AppError } from '../../db/model/errors.ts'
import type { SourceItem } from '../../db/model/incoming/source.ts'
import { firstCharacters } from '../../db/model/records/values.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Logger } from '../../db/process/log.ts'
import type { JobKey } from '../../db/queue/paged-jobs.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { bounded, TookTooLong } from '../bounded.ts'
import { acceptAll } from '../polls/accept-items.ts'
import { httpPages } from '../polls/http-pages.ts'
import { mailPages } from '../polls/mail-pages.ts'
import { type InTenant, type PageDeps, type PageReader, Problem } from '../polls/page.ts'
import type { Queue } from '../relay.ts'

export interface PollDeps extends PageDeps {
  db: Database
  log: Logger
  /** How often the lease is renewed. */
  renewMs?: number
  /** The time limit of a poll as a whole. */
  mostMs?: number
}

/** After it, a poll asks for no further page. */
const TURN_MS = 45_000
/**
 * The time limit of a poll, whose last page may take long. Without it, the lease of a poll that hangs would be renewed
 * for ever. It is shorter than the time limit of the relay, which would not end the lease.
 */
const MOST_MS = 100_000

/** The sources of incoming webhooks that are due. It starts no workflow: a claim is a poll. */
export const incomingPollsQueue = (deps: PollDeps): Queue<JobKey> => ({
  name: 'incoming polls',
  channel: 'agx_incoming_polls',
  // Sources that do not answer hold a place for 20 s and more.
  atOnce: 24,
  claim: incomingPolls.claim,
  start: (_client, job) => poll(deps, job),
})

/** Asks a source for what it lists, page by page, and accepts what is new as requests to its webhook. */
export async function poll(deps: PollDeps, { organization_id, id }: JobKey): Promise<void> {
  let isOver = false
  const db: Database = {
    ...deps.db,
    // A poll that was given up may still run. It must write nothing more: another worker may poll the source.
    async tenant(...transaction) {
      if (isOver) throw new Error('the poll was given up')
      return deps.db.tenant(...transaction)
    },
  }
  const tenant: InTenant = (work) => db.tenant(organization_id, SYSTEM, work)
  const webhook = await readPolled(db.system, id)
  if (!webhook) return incomingPolls.release(db.system, [{ organization_id, id }])
  const { source } = webhook
  const renewal = setInterval(() => {
    renewPoll(db.system, { organization_id, id }).catch((error: Error) =>
      deps.log.warn({ organization_id, webhook_id: id, reason: error.message }, 'a lease was not renewed'),
    )
  }, deps.renewMs ?? RENEW_MS)
  const pages =
    source.type === 'imap'
      ? mailPages(deps, tenant, organization_id, source)
      : httpPages(deps, webhook, source)
  const reading = readPages({ ...deps, db }, tenant, webhook, pages)
  const end = await bounded(deps.mostMs ?? MOST_MS, 'the poll', reading)
    .catch((error): PollEnd => {
      const reason = reasonOf(error)
      // Another cause, such as a database that is away: the lease ends, and the poll is repeated.
      if (reason === undefined) throw error
      const problem = firstCharacters(reason, 500)
      deps.log.info({ organization_id, webhook_id: id, problem }, 'the poll of a source failed')
      return { problem, isFailed: true, isRefused: isRefusal(error), isWhole: false }
    })
    .finally(() => {
      isOver = true
      clearInterval(renewal)
      pages.close()
    })
  await deps.db.tenant(organization_id, SYSTEM, (tx) => endPoll(tx, webhook, end))
}

const reasonOf = (error: unknown): string | undefined =>
  error instanceof Problem ||
  error instanceof NodeError ||
  error instanceof TookTooLong ||
  (error instanceof AppError && error.type !== 'unavailable')
    ? error.message
    : undefined

const isRefusal = (error: unknown): boolean =>
  error instanceof Problem ? error.isRefused : error instanceof NodeError && error.code === LOGIN_FAILED

async function readPages(
  deps: PollDeps,
  tenant: InTenant,
  webhook: PolledReceiver,
  pages: PageReader,
): Promise<PollEnd> {
  if (webhook.storage_full) throw new Problem('the organization stores as much as its plan allows')
  const began = new Date()
  let state: PollState = webhook.source_state ?? {}
  let problem: string | null = null
  for (;;) {
    const { items, cursor, isLast, notice } = await pages.read(state)
    if (notice !== undefined) problem = notice
    const fresh = await tenant((tx) =>
      unmarked(
        tx,
        webhook.id,
        items.map(({ fingerprint }) => fingerprint),
      ),
    )
    const found = items.filter((_, place) => fresh.has(place))
    if (state.began || webhook.source.existing) await acceptAll(deps, tenant, webhook, found)
    else await tenant((tx) => skipExisting(tx, webhook.id, found))
    state = {
      cursor,
      began: state.began || isLast,
      read_at: isLast ? began.toISOString() : state.read_at,
    }
    await tenant((tx) => savePollState(tx, webhook, state))
    if (isLast || Date.now() - began.getTime() > TURN_MS) return { problem, isFailed: false, isWhole: isLast }
  }
}

async function skipExisting(tx: Tenant, webhookId: string, items: SourceItem[]): Promise<void> {
  if (items.length === 0) return
  await markItems(
    tx,
    webhookId,
    items.map(({ fingerprint }) => fingerprint),
  )
}
