import type { System } from '../postgres/tenancy.ts'
import { isUnleased } from './queue.ts'

/** A bound for the counts: a partial index serves each, but a long queue would still be read whole. */
const LIMIT = 100_000

/** The rows of one status of a queue. */
export interface QueueStatus {
  queue: string
  status: string
  count: number
  /** Age of the oldest queued row that no relay has claimed; null if there is none. */
  lag_seconds: number | null
}

const UNCLAIMED_RUN = `not exists (
  select from run_claims c where c.organization_id = q.organization_id and c.run_id = q.id)`
const NOT_LEASED = isUnleased('lease_until')

/**
 * The queues that are measured, over all organizations: these four, by the statuses with a partial index, and in
 * STATEMENT also events, event cancels, deleted files, times of schedules and mails. Not measured are the long jobs (bulk
 * jobs, erasures, batches of runs, replays, embeddings), waits of runs, polls of sources, and changes of schedules and
 * deliveries.
 * `unclaimed`: SQL, whether no relay has claimed the row.
 */
const QUEUES = [
  { table: 'runs', statuses: ['queued', 'running'], unclaimed: UNCLAIMED_RUN },
  { table: 'deliveries', statuses: ['queued', 'delivering', 'held'], unclaimed: NOT_LEASED },
  { table: 'imports', statuses: ['queued', 'running'], unclaimed: NOT_LEASED },
  { table: 'exports', statuses: ['queued', 'running'], unclaimed: NOT_LEASED },
]

const lagOf = (unclaimed: string) =>
  `extract(epoch from now() - min(created_at) filter (where ${unclaimed}))::float8`

const STATEMENT = [
  ...QUEUES.flatMap(({ table, statuses, unclaimed }) =>
    statuses.map(
      (status) => `
      select '${table}' as queue, '${status}' as status, count(*) as count,
        ${status === 'queued' ? lagOf(unclaimed) : 'null::float8'} as lag_seconds
      from (select * from ${table} where status = '${status}' limit ${LIMIT}) q`,
    ),
  ),
  `select 'events', 'queued', count(*), extract(epoch from now() - min(created_at))::float8
     from (select created_at from events where matched_at is null limit ${LIMIT}) q`,
  `select 'event_cancels', 'queued', count(*), extract(epoch from now() - min(created_at))::float8
     from (select created_at from event_cancels limit ${LIMIT}) q`,
  `select 'deleted_files', 'queued', count(*), extract(epoch from now() - min(deleted_at))::float8
     from (select deleted_at from deleted_files limit ${LIMIT}) q`,
  // Some wait for the end of a run or of a pause, for however long: their age says nothing.
  `select 'schedule_fires', 'waiting', count(*), null::float8
     from (select from schedule_fires where status = 'waiting' limit ${LIMIT}) q`,
  // One that was tried is due again later.
  ...['approval_mails', 'account_mails'].map(
    (table) => `
      select '${table}', 'queued', count(*), extract(epoch from now() - min(due_at) filter (where due_at < now()))::float8
      from (select due_at from ${table} where ended_at is null limit ${LIMIT}) q`,
  ),
].join(' union all ')

/** The length and lag of the measured queues. */
export async function listQueues(system: System): Promise<QueueStatus[]> {
  const { rows } = await system.raw<{ rows: QueueStatus[] }>(STATEMENT)
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
