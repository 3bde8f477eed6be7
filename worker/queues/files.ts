import type { Client } from '@temporalio/client'
import type { Knex } from 'knex'
import type { Logger } from '../../db/log.ts'
import { claimAlone } from '../../db/postgres/queue-lock.ts'
import { SYSTEM } from '../../db/postgres/tenancy.ts'
import type { FileInput } from '../../workflows/files.ts'
import { summaryOf } from '../../workflows/summary.ts'
import type { Queue } from '../relay.ts'
import { type StartWorkflow, workflowStarter } from './start-workflow.ts'

const LEASE_SECONDS = 30
/** Of each organization and sort at once: a file takes as much of the database as it can get. */
const AT_ONCE = 2

/** Imports, or exports: what differs are names. */
export interface FileSort {
  table: 'imports' | 'exports'
  workflow: 'importRecords' | 'exportRecords'
  noun: 'import' | 'export'
}

export const FILE_SORTS: FileSort[] = [
  { table: 'imports', workflow: 'importRecords', noun: 'import' },
  { table: 'exports', workflow: 'exportRecords', noun: 'export' },
]

/** An import or export that was claimed. */
export interface FileRow {
  organization_id: string
  id: string
  entity: string
  starts: number
}

/** Each start is a workflow of its own, for an id is used once. */
export const fileWorkflowId = (sort: FileSort, row: Pick<FileRow, 'id' | 'starts'>) =>
  row.starts <= 1 ? `${sort.noun}:${row.id}` : `${sort.noun}:${row.id}:${row.starts}`

/** Files to be read or written. */
export function filesQueue(
  sort: FileSort,
  { taskQueue, log }: { taskQueue: string; log: Logger },
): Queue<FileRow> {
  const startWorkflow = workflowStarter(taskQueue, log)
  const key = (row: FileRow) => [row.organization_id, row.id, row.starts]
  return {
    name: sort.table,
    channel: 'agx_files',
    claim: (db, limit) => claim(db, sort, limit),
    start: (client, row) => startFile(startWorkflow, client, sort, row),
    async started(db, rows) {
      await db(sort.table)
        .whereIn(['organization_id', 'id', 'starts'], rows.map(key))
        .andWhere('status', 'queued')
        .update({ status: 'running', started_at: db.raw('coalesce(started_at, now())'), lease_until: null })
    },
    async refused(db, row, reason) {
      await db.tenant(row.organization_id, SYSTEM, (tx) =>
        tx
          .trx(sort.table)
          .where({ organization_id: row.organization_id, id: row.id, starts: row.starts, status: 'queued' })
          .update({
            status: 'failed',
            error: JSON.stringify({ message: reason.slice(0, 1_000) }),
            ended_at: tx.trx.fn.now(),
            lease_until: null,
          }),
      )
    },
  }
}

/** The oldest of each organization first, as long as it has a free slot. */
const claim = (db: Knex, { table }: FileSort, limit: number): Promise<FileRow[]> =>
  claimAlone(
    db,
    table,
    `with organizations as (select distinct organization_id from ${table} where status = 'queued'),
     candidates as (
       select q.* from organizations o cross join lateral (
         select f.organization_id, f.id, f.lease_until,
           row_number() over (order by f.id) + (
             select count(*) from ${table} b where b.organization_id = o.organization_id and b.status = 'running'
           ) as place
         from ${table} f
         where f.organization_id = o.organization_id and f.status = 'queued'
         order by f.id limit :atOnce) q
       where q.place <= :atOnce and (q.lease_until is null or q.lease_until < now()))
     update ${table} f set lease_until = now() + make_interval(secs => :lease)
     from (select * from candidates order by place limit :limit) c
     where f.organization_id = c.organization_id and f.id = c.id and f.status = 'queued'
     returning f.organization_id, f.id, f.entity, f.starts`,
    { atOnce: AT_ONCE, lease: LEASE_SECONDS, limit },
  )

function startFile(
  startWorkflow: StartWorkflow,
  client: Client,
  sort: FileSort,
  row: FileRow,
): Promise<void> {
  const { organization_id, id, starts } = row
  const summary = summaryOf(`${sort.noun} of ${row.entity}`)
  return startWorkflow<(input: FileInput) => Promise<unknown>>(client, {
    workflow: sort.workflow,
    workflowId: fileWorkflowId(sort, row),
    organizationId: organization_id,
    summary,
    memo: { [`${sort.noun}_id`]: id },
    args: [{ organization_id, id, start: starts, summary }],
  })
}
