import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import { endUnrecordedFile, type FileStart } from '../db/files/moves/queue.ts'
import { listIdleFiles } from '../db/files/queue.ts'
import type { Logger } from '../db/log.ts'
import type { Database } from '../db/postgres/connect.ts'
import { FILE_SORTS, type FileSort, fileWorkflowId } from './queues/files.ts'

const BATCH = 200

/**
 * Sweeps imports and exports: ends those whose workflow ended without recording it (an operator terminated it), which
 * frees their slot. Such an import can be resumed. `idle` is a PostgreSQL interval.
 */
export async function sweepFiles(
  { db, client, log }: { db: Database; client: Client; log: Logger },
  idle: string,
): Promise<void> {
  for (const sort of FILE_SORTS)
    for (const start of await listIdleFiles(db.system, sort.table, idle, BATCH)) {
      const message = await endOf(client, sort, start)
      if (message === undefined) continue
      const ended = await endUnrecordedFile(db.system, sort.table, start, message)
      const { organization_id, id } = start
      if (ended) log.warn({ organization_id, [`${sort.noun}_id`]: id }, message)
    }
}

async function endOf(client: Client, sort: FileSort, start: FileStart): Promise<string | undefined> {
  try {
    const { status } = await client.workflow.getHandle(fileWorkflowId(sort, start)).describe()
    if (status.name === 'RUNNING' || status.name === 'CONTINUED_AS_NEW') return undefined
    return `The ${sort.noun}'s workflow was ${status.name.toLowerCase()} in Temporal.`
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
    return `Temporal no longer has the ${sort.noun}'s workflow.`
  }
}
