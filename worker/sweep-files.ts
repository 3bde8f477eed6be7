import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import type { Logger } from '../db/log.ts'
import type { Database } from '../db/postgres/connect.ts'
import { FILE_SORTS, type FileRow, type FileSort, fileWorkflowId } from './queues/files.ts'

const BATCH = 200

/**
 * The sweep's part for imports and exports: those whose workflow ended without their row knowing (an operator
 * terminated it) end too, and free their slot. An import can be resumed then. `idle` is an interval.
 */
export async function sweepFiles(
  { db, client, log }: { db: Database; client: Client; log: Logger },
  idle: string,
): Promise<void> {
  for (const sort of FILE_SORTS) {
    const { rows } = await db.system.raw<{ rows: FileRow[] }>(
      `select organization_id, id, entity, starts from ${sort.table}
       where status = 'running' and updated_at < now() - cast(? as interval) order by updated_at limit ?`,
      [idle, BATCH],
    )
    for (const row of rows) {
      const message = await endOf(client, sort, row)
      if (message === undefined) continue
      const { organization_id, id, starts } = row
      const ended = await db
        .system(sort.table)
        .where({ organization_id, id, starts, status: 'running' })
        .update({
          status: sort.table === 'imports' ? 'stopped' : 'failed',
          error: JSON.stringify({ message }),
          ended_at: db.system.fn.now(),
        })
      if (ended > 0) log.warn({ organization_id, [`${sort.noun}_id`]: id }, message)
    }
  }
}

async function endOf(client: Client, sort: FileSort, row: FileRow): Promise<string | undefined> {
  try {
    const { status } = await client.workflow.getHandle(fileWorkflowId(sort, row)).describe()
    if (status.name === 'RUNNING' || status.name === 'CONTINUED_AS_NEW') return undefined
    return `The ${sort.noun}'s workflow was ${status.name.toLowerCase()} in Temporal.`
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
    return `Temporal does not know the ${sort.noun} any more.`
  }
}
