import type { System } from '../postgres/tenancy.ts'
import { countLateRuns, countStuckRuns } from './depth.ts'

/** What an operator sees of all organizations: ids, names, counts and reasons, no values of records. Reads only. */

/** A bound for the counts, as in depth.ts. */
const COUNTED = 100_000

export type Row = Record<string, string | number | Date | null>

const read = async (
  system: System,
  sql: string,
  bindings: Record<string, number | string> = {},
): Promise<Row[]> => (await system.raw<{ rows: Row[] }>(sql, bindings)).rows

/** How many organizations, failing webhooks, stuck and late runs there are. */
export async function countWork(system: System): Promise<Record<string, number>> {
  const [row] = await read(
    system,
    `select (select count(*) from organizations) as organizations,
       (select count(*) from outgoing_webhooks where failing_since is not null) as failing_webhooks`,
  )
  const [stuck_runs, late_runs] = [await countStuckRuns(system), await countLateRuns(system)]
  return { ...(row as Record<string, number>), stuck_runs, late_runs }
}

/** The open work of an organization: name, table, and which rows are counted (SQL). */
const OPEN = [
  ['runs_queued', 'runs', "status = 'queued' and hold is null"],
  ['runs_held', 'runs', "status = 'queued' and hold is not null"],
  ['runs_running', 'runs', "status = 'running'"],
  ['runs_paused', 'runs', "status = 'paused'"],
  ['runs_stuck', 'runs', 'stuck_reason is not null and ended_at is null'],
  ['runs_late', 'runs', 'late_at is not null and ended_at is null'],
  ['deliveries_queued', 'deliveries', "status = 'queued'"],
  ['deliveries_delivering', 'deliveries', "status = 'delivering'"],
  ['deliveries_held', 'deliveries', "status = 'held'"],
  ['webhooks_failing', 'outgoing_webhooks', 'failing_since is not null'],
] as const

const COUNT_OPEN = OPEN.map(
  ([name, table, where]) =>
    `(select count(*) from (select from ${table} where organization_id = :id and ${where} limit ${COUNTED}) q) as ${name}`,
).join(', ')

/** How much open work one organization has. */
export async function countWorkOf(system: System, organizationId: string): Promise<Record<string, number>> {
  const [row] = await read(system, `select ${COUNT_OPEN}`, { id: organizationId })
  return row as Record<string, number>
}

/** The open runs that cannot go on without an operator, the last changed first. */
export const listStuck = (system: System, limit: number): Promise<Row[]> =>
  read(
    system,
    `select organization_id, id as run_id, workflow_name, stuck_reason, updated_at from runs
     where stuck_reason is not null and ended_at is null order by updated_at desc limit :limit`,
    { limit },
  )

/** What is held, by what holds it: deliveries of a webhook, queued runs of a workflow. The most first. */
export const listHeld = (system: System, limit: number): Promise<Row[]> =>
  read(
    system,
    `select 'delivery' as held, organization_id, webhook_id as of_id, held_for as hold, count(*) as count,
       min(created_at) as oldest
     from (select organization_id, webhook_id, held_for, created_at from deliveries where status = 'held'
       limit ${COUNTED}) d
     group by organization_id, webhook_id, held_for
     union all
     select 'run', organization_id, workflow_id, hold, count(*), min(created_at)
     from (select organization_id, workflow_id, hold, created_at from runs
       where status = 'queued' and hold is not null limit ${COUNTED}) r
     group by organization_id, workflow_id, hold
     order by count desc, of_id limit :limit`,
    { limit },
  )

/** What fails again and again: outgoing webhooks, and mails of accounts and approvals. The longest first. */
export const listFailing = (system: System, limit: number): Promise<Row[]> =>
  read(
    system,
    `select 'webhook' as failing, organization_id, id, coalesce(status_reason, 'its attempts fail') as reason,
       failing_since as since
     from outgoing_webhooks where failing_since is not null
     union all
     select 'account mail', organization_id, id, problem, created_at from account_mails
     where ended_at is null and problem is not null
     union all
     select 'approval mail', organization_id, id, problem, created_at from approval_mails
     where ended_at is null and problem is not null
     order by since limit :limit`,
    { limit },
  )
