import type { Client } from '@temporalio/client'
import type { Knex } from 'knex'
import type { Logger } from '../../db/log.ts'
import { lockRun } from '../../db/runs/state.ts'
import type { run, testNode } from '../../workflows/index.ts'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import { summaryOf } from '../../workflows/summary.ts'
import { recordEnd } from '../record-end.ts'
import type { Queue } from '../relay.ts'
import { searchAttributes } from '../search-attributes.ts'
import { claimAlone } from './claim.ts'
import { type StartWorkflow, workflowStarter } from './start-workflow.ts'

/** Runs of one organization that may be running at once, unless its limits say otherwise. */
const MAX_RUNNING = 1_000
const LEASE_SECONDS = 30

/** A run that was claimed. */
export interface RunRow {
  organization_id: string
  id: string
  kind: 'run' | 'node_test'
  workflow_id: string | null
  workflow_name: string
  workflow_version: number | null
  trigger_type: RunTrigger['type']
  record_id: string | null
  starts_with: string | null
  organization_name: string
}

export const workflowIdOf = (row: { id: string; kind: string }) =>
  row.kind === 'run' ? `run:${row.id}` : `node-test:${row.id}`

/** Runs of workflows and tests of nodes. */
export function runsQueue({ taskQueue, log }: { taskQueue: string; log: Logger }): Queue<RunRow> {
  const startWorkflow = workflowStarter(taskQueue, log)
  return {
    name: 'runs',
    channel: 'agx_runs',
    claim,
    start: (client, row) => startRun(startWorkflow, client, row),
    async started(db, rows) {
      // A row that is locked is in its first segment, which says the same: nothing waits for it, nor it for others.
      await db.raw(
        `update runs r set status = 'running', started_at = now(), updated_at = now(), lease_until = null
         from (
           select r.organization_id, r.id
           from jsonb_to_recordset(?) as s(organization_id uuid, id uuid)
           join runs r on r.organization_id = s.organization_id and r.id = s.id
           where r.status = 'queued' for update of r skip locked) s
         where r.organization_id = s.organization_id and r.id = s.id`,
        [JSON.stringify(rows.map(({ organization_id, id }) => ({ organization_id, id })))],
      )
    },
    async refused(db, row, reason) {
      const { organization_id, id } = row
      await db.tenant(organization_id, { type: 'system', id: null }, async (tx) => {
        const state = await lockRun(tx, id, undefined)
        if (state?.run.status !== 'queued') return
        await recordEnd(tx, state, 'failed', { code: 'start_refused', message: reason.slice(0, 1_000) })
      })
    },
  }
}

/**
 * The lanes (workflows of an organization) with something queued are found by skipping through the index; from each
 * come at most as many rows as it has free slots.
 */
const claim = (db: Knex, limit: number): Promise<RunRow[]> =>
  claimAlone(db, 'runs', CLAIM, { limit, lease: LEASE_SECONDS, maxRunning: MAX_RUNNING })

const CLAIM = `
  with recursive lanes as (
    (select organization_id, lane from runs where status = 'queued' order by organization_id, lane limit 1)
    union all
    select next.* from lanes cross join lateral (
      select r.organization_id, r.lane from runs r
      where r.status = 'queued' and (r.organization_id, r.lane) > (lanes.organization_id, lanes.lane)
      order by r.organization_id, r.lane limit 1) next
  ), busy as materialized (
    select l.organization_id, l.lane,
      (select count(*) from runs r where r.organization_id = l.organization_id and r.lane = l.lane
         and (r.status = 'running')) +
      (select count(*) from runs r where r.organization_id = l.organization_id and r.lane = l.lane
         and r.status = 'queued' and r.lease_until > now()) as running
    from lanes l
  ), organizations_busy as materialized (
    select o.id, o.name, coalesce((o.limits ->> 'max_running')::integer, :maxRunning) -
      (select count(*) from runs r where r.organization_id = o.id and r.status = 'running') -
      (select coalesce(sum(b.running), 0) - coalesce(sum((select count(*) from runs r
         where r.organization_id = b.organization_id and r.lane = b.lane and r.status = 'running')), 0)
       from busy b where b.organization_id = o.id) as free
    from organizations o where o.id in (select organization_id from lanes)
  ), candidates as (
    select q.organization_id, q.id,
      row_number() over (partition by q.organization_id order by q.id) as turn
    from busy b cross join lateral (
      select r.organization_id, r.id, r.concurrency,
        row_number() over (order by r.id) as place
      from runs r
      where r.organization_id = b.organization_id and r.lane = b.lane and r.status = 'queued'
        and (r.lease_until is null or r.lease_until < now())
      order by r.id limit :limit) q
    where q.concurrency is null or b.running + q.place <= q.concurrency
  ), chosen as materialized (
    select c.organization_id, c.id, o.name from candidates c join organizations_busy o on o.id = c.organization_id
    where c.turn <= o.free order by c.turn, c.id limit :limit
  )
  update runs r set lease_until = now() + make_interval(secs => :lease), start_attempts = start_attempts + 1
  from chosen c
  where r.organization_id = c.organization_id and r.id = c.id
    -- not as the queue's index has it, which would be read whole for each row, while this is by primary key
    and r.status || '' = 'queued'
  returning r.organization_id, r.id, r.kind, r.workflow_id, r.workflow_name, r.workflow_version,
    r.trigger ->> 'type' as trigger_type, r.record_id, r.starts_with, c.name as organization_name`

function startRun(startWorkflow: StartWorkflow, client: Client, row: RunRow): Promise<void> {
  const { organization_id, id, workflow_id, record_id } = row
  const shared = {
    workflowId: workflowIdOf(row),
    organizationId: organization_id,
    summary: summaryOf(`${row.workflow_name} (${row.organization_name})`),
    memo: { run_id: id, workflow_id, workflow_version: row.workflow_version },
    attributes: [
      { key: searchAttributes.trigger, value: row.trigger_type },
      ...(workflow_id ? [{ key: searchAttributes.workflow, value: workflow_id }] : []),
      ...(record_id ? [{ key: searchAttributes.record, value: record_id }] : []),
    ],
  }
  if (row.kind === 'node_test')
    return startWorkflow<typeof testNode>(client, {
      ...shared,
      workflow: 'testNode',
      args: [{ organization_id, test_id: id }],
    })
  return startWorkflow<typeof run>(client, {
    ...shared,
    workflow: 'run',
    args: [{ engine: 1, organization_id, run_id: id, starts_with: row.starts_with ?? 'Start' }],
  })
}
