import type { System } from '../postgres/tenancy.ts'
import { isUnleased } from './queue.ts'

/** A bound for the counts: a partial index serves each, but a long queue would still be read whole. */
const LIMIT = 100_000

/** The rows of one status of a queue. */
export interface QueueStatus {
  queue: string
  status: string
  count: number
  /**
   * How long the oldest queued row that no relay has claimed has waited; null if there is none, and for other statuses.
   */
  lag_seconds: number | null
}

const UNCLAIMED_RUN = `not exists (
  select from run_claims c where c.organization_id = q.organization_id and c.run_id = q.id)`
const NOT_LEASED = isUnleased('lease_until')

interface Measured {
  table: string
  /** Each with SQL on the row, the condition of a partial index. */
  statuses: [status: string, where: string][]
  /** SQL: whether no relay has claimed the row. */
  unclaimed: string
  /** The column with the moment since when a queued row waits. */
  since: string
}

const ofStatus = (...statuses: string[]): Measured['statuses'] =>
  statuses.map((status) => [status, `status = '${status}'`])

/**
 * The queues that are measured, over all organizations: these, by their statuses, and in STATEMENT also events, event
 * cancels, changes for lists, deleted files, times of schedules, mails and polls of sources. Not measured are waits of runs, and changes of
 * schedules and deliveries.
 */
const QUEUES: Measured[] = [
  {
    table: 'runs',
    // Held ones wait for a moment or a key, by the settings of their workflow: their age is no fault of anything.
    statuses: [
      ['queued', "status = 'queued' and hold is null"],
      ['held', "status = 'queued' and hold is not null"],
      ...ofStatus('running'),
    ],
    unclaimed: UNCLAIMED_RUN,
    // One that was held, paused or lost by Temporal was created long before it was queued again.
    since: 'updated_at',
  },
  {
    table: 'deliveries',
    statuses: ofStatus('queued', 'delivering', 'held'),
    unclaimed: NOT_LEASED,
    since: 'created_at',
  },
  // They are created before they are started, and started again.
  ...['imports', 'exports', 'knowledge_embeddings'].map((table) => ({
    table,
    statuses: ofStatus('queued', 'running'),
    unclaimed: NOT_LEASED,
    since: 'updated_at',
  })),
]

/** Long jobs, with SQL: whether the job has not ended, the condition of a partial index. */
const JOBS = {
  bulk_jobs: 'ended_at is null',
  erasures: 'ended_at is null',
  run_batches: 'ended_at is null',
  incoming_replays: "status = 'running'",
  outgoing_replays: "status = 'running'",
}

const ageOf = (since: string, where = 'true') =>
  `extract(epoch from now() - min(${since}) filter (where ${where}))::float8`

const STATEMENT = [
  ...QUEUES.flatMap(({ table, statuses, unclaimed, since }) =>
    statuses.map(
      ([status, where]) => `
      select '${table}' as queue, '${status}' as status, count(*) as count,
        ${status === 'queued' ? ageOf(since, unclaimed) : 'null::float8'} as lag_seconds
      from (select * from ${table} where ${where} limit ${LIMIT}) q`,
    ),
  ),
  `select 'events', 'queued', count(*), ${ageOf('created_at')}
     from (select created_at from events where matched_at is null limit ${LIMIT}) q`,
  `select 'event_cancels', 'queued', count(*), ${ageOf('created_at')}
     from (select created_at from event_cancels limit ${LIMIT}) q`,
  `select 'list_changes', 'queued', count(*), ${ageOf('created_at')}
     from (select created_at from list_changes limit ${LIMIT}) q`,
  `select 'deleted_files', 'queued', count(*), ${ageOf('deleted_at')}
     from (select deleted_at from deleted_files limit ${LIMIT}) q`,
  // Some wait for the end of a run or of a pause, for however long: their age says nothing.
  `select 'schedule_fires', 'waiting', count(*), null::float8
     from (select from schedule_fires where status = 'waiting' limit ${LIMIT}) q`,
  // One that was tried is due again later.
  ...['approval_mails', 'account_mails'].map(
    (table) => `
      select '${table}', 'queued', count(*), ${ageOf('due_at', 'due_at < now()')}
      from (select due_at from ${table} where ended_at is null limit ${LIMIT}) q`,
  ),
  `select 'incoming_polls', 'queued', count(*), ${ageOf('next_poll_at', isUnleased('poll_lease_until'))}
     from (select next_poll_at, poll_lease_until from incoming_webhooks
       where next_poll_at <= now() and status = 'Active' limit ${LIMIT}) q`,
].join(' union all ')

const JOBS_STATEMENT = Object.entries(JOBS)
  .map(
    ([table, where]) => `
    select '${table}' as queue, count(*) as count, ${ageOf('created_at')} as oldest_seconds
    from (select created_at from ${table} where ${where} limit ${LIMIT}) q`,
  )
  .join(' union all ')

/** The length and lag of the measured queues. */
export async function listQueues(system: System): Promise<QueueStatus[]> {
  const { rows } = await system.raw<{ rows: QueueStatus[] }>(STATEMENT)
  return rows
}

/** The open jobs of one sort: each waits again after each turn of a worker. */
export interface OpenJobs {
  queue: string
  count: number
  /** The time since the oldest one was created; null if there is none. */
  oldest_seconds: number | null
}

/** The long jobs that have not ended, of each sort. */
export async function listJobs(system: System): Promise<OpenJobs[]> {
  const { rows } = await system.raw<{ rows: OpenJobs[] }>(JOBS_STATEMENT)
  return rows
}

/** The number of open runs that are late. */
export const countLateRuns = (system: System): Promise<number> => countOpen(system, 'late_at is not null')

/** The number of open runs that cannot go on without an operator. */
export const countStuckRuns = (system: System): Promise<number> =>
  countOpen(system, 'stuck_reason is not null')

async function countOpen(system: System, where: string): Promise<number> {
  const { rows } = await system.raw<{ rows: { count: number }[] }>(
    `select count(*) as count from (select from runs where ${where} and ended_at is null limit ${LIMIT}) r`,
  )
  return Number(rows[0]!.count)
}
