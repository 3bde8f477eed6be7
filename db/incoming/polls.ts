import { mailOwners } from '../access/account-mails.ts'
import type { Subscription } from '../access/plans.ts'
import type { Source } from '../model/incoming/source.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import type { JobKey } from '../queue/paged-jobs.ts'
import { defineQueue } from '../queue/queue.ts'
import { findReceivers, type Receiver } from './receiving.ts'

/**
 * Seconds. The worker renews the lease while it polls. After a kill the lease ends soon, and another worker repeats the
 * poll.
 */
const POLL_LEASE = 15
export const RENEW_MS = 5_000

/**
 * The polls of sources. A source is a row that is due: a worker leases it, and what it accepts is written with the mark
 * of each item in one transaction. So a worker that is killed neither loses nor doubles an item, wherever it stops: the
 * next one asks from the last cursor that was stored, and finds the marks.
 */
export const incomingPolls = defineQueue<JobKey>({
  table: 'incoming_webhooks',
  key: ['organization_id', 'id'],
  waits: "next_poll_at <= now() and status = 'Active'",
  order: 'next_poll_at',
  lease: 'poll_lease_until',
  seconds: POLL_LEASE,
  turns: { slots: 2 },
})

/** Where the polls of a source are. */
export interface PollState {
  /** The last cursor that an answer gave. */
  cursor?: string | undefined
  /** The first listing has been read to its end. */
  began?: boolean | undefined
  /** When the last poll began that read the list to its end. */
  read_at?: string | undefined
}

/** A webhook with its source, as a worker polls it. */
export type PolledReceiver = Receiver &
  Subscription & { source: Source; source_headers_sealed: string | null; source_state: PollState }

/** Undefined if the webhook was deleted, became Inactive, or has no source any more. */
export async function readPolled(system: System, webhookId: string): Promise<PolledReceiver | undefined> {
  const [receiver] = (await findReceivers(system, [{ webhookId, source: '' }])).values()
  const polled = receiver as PolledReceiver | undefined
  return polled?.source && polled.status === 'Active' ? polled : undefined
}

/** The indexes of the fingerprints that have no mark; the others are marked as listed still, once a day. */
export async function unmarked(tx: Tenant, webhookId: string, fingerprints: Buffer[]): Promise<Set<number>> {
  const { rows } = await tx.trx.raw<{ rows: { place: number }[] }>(
    `with given as (select f, place from unnest(:fingerprints::bytea[]) with ordinality g (f, place)),
     listed as (
       update incoming_items i set seen_at = now() from given
       where i.organization_id = :organizationId and i.webhook_id = :webhookId and i.fingerprint = given.f
         and i.seen_at < now() - interval '1 day')
     select place::integer - 1 as place from given where not exists (
       select from incoming_items i where i.organization_id = :organizationId and i.webhook_id = :webhookId
         and i.fingerprint = given.f)`,
    { organizationId: tx.organizationId, webhookId, fingerprints } as never,
  )
  return new Set(rows.map(({ place }) => place))
}

/** Another worker has marked an item of the transaction. */
export class AlreadyMarked extends Error {}

/** Marks items as taken. Throws AlreadyMarked for any that was, so that the transaction leaves nothing. */
export async function markItems(tx: Tenant, webhookId: string, fingerprints: Buffer[]): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    // In order: two transactions could wait for each other.
    `insert into incoming_items (organization_id, webhook_id, fingerprint)
     select :organizationId, :webhookId, f from unnest(:fingerprints::bytea[]) f order by f
     on conflict do nothing`,
    { organizationId: tx.organizationId, webhookId, fingerprints } as never,
  )
  if (rowCount < fingerprints.length) throw new AlreadyMarked('the item was taken already')
}

/** Stores how far the polls are, unless the source was changed since it was read. */
export async function savePollState(
  tx: Tenant,
  { id, source }: PolledReceiver,
  state: PollState,
): Promise<void> {
  await tx.trx.raw(
    `update incoming_webhooks set source_state = :state
     where organization_id = :organizationId and id = :id and source = cast(:source as jsonb)`,
    {
      organizationId: tx.organizationId,
      id,
      source: JSON.stringify(source),
      state: JSON.stringify(state),
    },
  )
}

/** Renews the lease of a poll in progress. */
export async function renewPoll(system: System, { organization_id, id }: JobKey): Promise<void> {
  await system.raw(
    `update incoming_webhooks set poll_lease_until = now() + interval '${POLL_LEASE} seconds'
     where organization_id = ? and id = ? and poll_lease_until is not null`,
    [organization_id, id],
  )
}

/** How a poll ended. */
export interface PollEnd {
  /** Why it failed, or what its owner needs to know. */
  problem: string | null
  isFailed: boolean
  /** The source refuses to be read as it is set, such as its password: only its owner can mend that. */
  isRefused?: boolean
  /** The list was read to its end; otherwise it goes on at once. */
  isWhole: boolean
}

/** Minutes after the first failed poll in a row, the second, …; then the interval of the source, which is the most. */
const RETRY_MINUTES = [1, 5, 15]

/**
 * Minutes after the first poll that is refused; after each further one in a row twice as long, a day at most: a mailbox
 * locks an account whose password is tried again and again.
 */
const REFUSED_MINUTES = 15
const DAY_MINUTES = 1_440

/** The failed poll in a row of which the owners get a mail: of a source that refuses after an hour, else after a day. */
const REPORTED_REFUSAL = 3
const reportedFailure = (interval: number) => RETRY_MINUTES.length + 1 + Math.ceil(DAY_MINUTES / interval)

/** Ends a poll, and sets the time of the next one: at once if the source was changed meanwhile. */
export async function endPoll(
  tx: Tenant,
  { id, name, source }: Pick<PolledReceiver, 'id' | 'name' | 'source'>,
  { problem, isFailed, isRefused = false, isWhole }: PollEnd,
): Promise<void> {
  const interval = source.interval_minutes
  const { rows } = await tx.trx.raw<{ rows: { poll_failures: number; is_same: boolean }[] }>(
    `update incoming_webhooks set poll_lease_until = null, polled_at = now(), poll_problem = :problem,
       poll_failures = case when :isFailed then poll_failures + 1 else 0 end,
       next_poll_at = case when source = cast(:source as jsonb) then now() + make_interval(secs => 60 *
           case when :isRefused then least(${DAY_MINUTES}, greatest(:interval, ${REFUSED_MINUTES}) * 2 ^ least(poll_failures, 10))
                when :isFailed then least(:interval, coalesce((:retries::int[])[poll_failures + 1], :interval))
                else :after end) * (1 + random() * 0.05)
         else next_poll_at end
     where organization_id = :organizationId and id = :id
     returning poll_failures, source = cast(:source as jsonb) as is_same`,
    {
      organizationId: tx.organizationId,
      id,
      problem,
      isFailed,
      isRefused,
      source: JSON.stringify(source),
      retries: RETRY_MINUTES,
      interval,
      after: isWhole ? interval : 0,
    } as never,
  )
  const [ended] = rows
  const reported = isRefused ? REPORTED_REFUSAL : reportedFailure(interval)
  if (isFailed && ended?.is_same && ended.poll_failures === reported)
    await mailOwners(tx, 'source_failing', { webhook_name: name, reason: problem ?? '' })
}

/** Has the sources polled at once that failed with a secret which is stored now. */
export async function pollAgainWith(tx: Tenant, secret: string): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update incoming_webhooks set next_poll_at = now()
     where organization_id = ? and status = 'Active' and poll_failures > 0 and source ->> 'password_secret' = ?`,
    [tx.organizationId, secret],
  )
  if (rowCount > 0) tx.wake('agx_incoming_polls')
}
