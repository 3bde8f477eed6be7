import { endUnrecordedFile, FILE_IDS, type FileStart } from '../../db/files/moves/queue.ts'
import { listIdleFiles } from '../../db/files/queue.ts'
import { FILE_SORTS, type FileSort, fileWorkflowId } from '../queues/files.ts'
import { BATCH, type CheckDeps, type SweepDeps } from './deps.ts'
import { describeEach, type Found } from './describe.ts'

/** Checks the imports and exports without a write for `idle` (a PostgreSQL interval). */
export async function sweepIdleFiles(deps: SweepDeps, idle: string): Promise<void> {
  for (const sort of FILE_SORTS)
    await checkFiles(deps, sort, await listIdleFiles(deps.db.system, sort.table, idle, BATCH))
}

/**
 * Ends imports or exports whose workflow ended without recording it (an operator terminated it), which frees their
 * slot. Such an import can be resumed.
 */
export async function checkFiles(deps: CheckDeps, sort: FileSort, starts: FileStart[]): Promise<void> {
  const { db, log } = deps
  await describeEach(
    deps,
    starts,
    (start) => fileWorkflowId(sort, start),
    async (start, found) => {
      const message = endOf(sort, found)
      if (message === undefined) return
      const ended = await endUnrecordedFile(db.system, sort.table, start, message)
      const { organization_id, id } = start
      if (ended) log.warn({ organization_id, [FILE_IDS[sort.table]]: id }, message)
    },
  )
}

function endOf(sort: FileSort, found: Found): string | undefined {
  if (found === 'not_found') return `Temporal no longer has the ${sort.noun}'s workflow.`
  const { name } = found.workflow.status
  if (name === 'RUNNING' || name === 'CONTINUED_AS_NEW') return undefined
  return `The ${sort.noun}'s workflow was ${name.toLowerCase()} in Temporal.`
}
