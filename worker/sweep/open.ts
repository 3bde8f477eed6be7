import { comparisonDue, endComparison, listAtRest } from '../../db/runs/queue.ts'
import { REFRESH } from '../../workflows/bundle/protocol.ts'
import { workflowIdOf } from '../queues/runs.ts'
import type { SweepDeps } from './deps.ts'
import { concurrently, withTimeout } from './describe.ts'
import { pages } from './pages.ts'

/** The runs that Temporal has as open. */
export interface OpenRuns {
  ids: ReadonlySet<string>
  /** When they were listed. */
  at: Date
}

/** Executions per page of the listing, the most that Temporal gives. */
const PAGE = 1_000

/**
 * Ends the workflows of runs that have ended or are paused in the rows: Temporal was restored to an earlier moment. They
 * read the rows again, and end as these say. Compared rarely, and after each loss of Temporal.
 * @returns the ids of the runs that Temporal has; undefined if it is not time, or if time was over before all were
 * listed.
 */
export async function sweepOpenWorkflows(deps: SweepDeps, idle: string): Promise<OpenRuns | undefined> {
  const { db, client, log, taskQueue } = deps
  const since = await comparisonDue(db.system, idle)
  if (!since) return undefined
  const ids = new Set<string>()
  const query = `ExecutionStatus = 'Running' AND WorkflowType = 'run' AND TaskQueue = '${taskQueue}'`
  for await (const page of pages(client, query, PAGE)) {
    const runs = page.filter(({ sort }) => sort === 'run')
    for (const { id } of runs) ids.add(id)
    const atRest = await listAtRest(db.system, runs, idle)
    await concurrently(atRest, async (run) => {
      const handle = client.workflow.getHandle(workflowIdOf({ ...run, kind: 'run' }))
      await withTimeout(client, () => handle.signal(REFRESH)).catch((err) =>
        log.warn({ err, run_id: run.id }, 'the workflow of a run that has ended could not be told'),
      )
    })
    if (atRest.length > 0)
      log.warn({ count: atRest.length }, 'ends workflows in Temporal whose runs have ended or are paused')
    if (!(await deps.keepOn())) return undefined
  }
  await endComparison(db.system, since)
  return { ids, at: since }
}
