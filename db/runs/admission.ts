import { limitSql } from '../access/plans.ts'

/**
 * The limits of runs in progress, as SQL. An organization's limit (`max_running`) counts its active runs: sleeping
 * runs, which only wait for a time or an event, do not count. A workflow's `concurrency` counts all of its running
 * runs.
 */

/** SQL: the limit of active runs of the organization `o`. */
export const ORGANIZATION_LIMIT = limitSql('max_running')

/**
 * SQL: the number of active runs that match `where`, counted up to about `most`. A sleeping run counts from its wake-up
 * time on: Temporal has work for it, and on a busy server hundreds of runs wait to continue.
 */
const active = (where: string, most: string): string => `(select count(*) from (
  (select from runs r where ${where} and r.status = 'running' and r.sleeps_until is null limit ${most}) union all
  (select from runs r where ${where} and r.status = 'running' and r.sleeps_until < now() limit ${most})) active)`

/**
 * SQL: the number of active runs of all organizations, counted up to about `most`. Without those that only workers of
 * pools have work for: where none polls, they would take the capacity of all workers.
 */
export const activeRuns = (most: string): string => active('not r.in_pool', most)

/** SQL: the number of active runs of the organization `o`, counted up to about its limit. */
export const ACTIVE_RUNS = active('r.organization_id = o.id', ORGANIZATION_LIMIT)

/** SQL: the number of running runs in the lane of the row `alias`, counted up to `most`, because many may sleep. */
export const runningInLane = (alias: string, most: string): string => `(select count(*) from (
  select from runs r where r.organization_id = ${alias}.organization_id and r.lane = ${alias}.lane
    and r.status = 'running' limit ${most}) busy)`
