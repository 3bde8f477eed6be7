import type { System } from '../postgres/tenancy.ts'

/** A run that its workflow's concurrency limit excludes, and its fate. */
export interface Surplus {
  organization_id: string
  id: string
  action: 'skip' | 'cancel'
  workflow_name: string
  concurrency: number
}

/** Maximum number of lanes per query, and of open runs per lane. */
const LANES = 100
const OPEN = 2_000

/**
 * The runs above the limit of workflows whose runs do not wait (`on_limit`). `skip`: queued runs without a slot; runs
 * in progress and earlier queued runs have the slots. `cancel_running`: all but the newest runs. A single statement
 * sees one snapshot: a run is either queued or in progress, whichever relay has claimed it. A run that resumes after a
 * pause always waits.
 */
export async function listSurplus(system: System): Promise<Surplus[]> {
  const { rows } = await system.raw<{ rows: Surplus[] }>(
    `with lanes as materialized (
       select distinct organization_id, lane from runs where status = 'queued' and hold is null and on_limit is not null limit ?
     ), open as materialized (
       select l.organization_id, l.lane, r.*, exists (
         select from run_claims c where c.organization_id = l.organization_id and c.run_id = r.id) as claimed
       from lanes l cross join lateral (
         (select r.id, r.status, r.priority, r.resumes, r.on_limit, r.concurrency, r.workflow_name,
            r.cancel_requested_at is not null as ending
          from runs r where r.organization_id = l.organization_id and r.lane = l.lane and r.status = 'running'
          order by r.id desc limit ${OPEN})
         union all
         (select r.id, r.status, r.priority, r.resumes, r.on_limit, r.concurrency, r.workflow_name,
            r.cancel_requested_at is not null
          from runs r where r.organization_id = l.organization_id and r.lane = l.lane and r.status = 'queued' and r.hold is null
          order by r.priority, r.id limit ${OPEN})) r
     ), newest as (
       -- the newest version of the settings decides what becomes of runs of all versions
       select distinct on (organization_id, lane) organization_id, lane, on_limit, concurrency from open
       where status = 'queued' order by organization_id, lane, id desc
     ), ranked as (
       select *, row_number() over (partition by organization_id, lane
           order by status = 'running' desc, claimed or resumes > 0 desc, priority, id) as place,
         row_number() over (partition by organization_id, lane, ending order by id desc) as age
       from open
     )
     select r.organization_id, r.id, r.workflow_name, n.concurrency,
       case n.on_limit when 'skip' then 'skip' else 'cancel' end as action
     from ranked r join newest n using (organization_id, lane)
     where (n.on_limit = 'skip' and r.status = 'queued' and not r.claimed and r.resumes = 0 and r.place > n.concurrency)
       or (n.on_limit = 'cancel_running' and not r.ending and r.age > n.concurrency
         and (r.status = 'running' or r.resumes = 0))
     order by r.organization_id, r.id`,
    // The driver prepares only statements with parameters, and planning this one takes a millisecond.
    [LANES],
  )
  return rows
}
