import { listOpenFiles } from '../../db/files/queue.ts'
import { listOpenDeliveries } from '../../db/outgoing/queue.ts'
import { readWatermark, saveWatermark } from '../../db/queue/sweep-state.ts'
import { listOpenRuns } from '../../db/runs/queue.ts'
import { FILE_SORTS } from '../queues/files.ts'
import { checkDeliveries } from './deliveries.ts'
import { BATCH, type CheckDeps, type SweepDeps } from './deps.ts'
import { checkFiles } from './files.ts'
import { type Listed, pages } from './pages.ts'
import { checkRuns } from './runs.ts'

/**
 * The statuses of executions that may have closed without recording their end; completed ones have recorded it. The
 * query uses only what SQL visibility supports: no ORDER BY, and few operators.
 */
const ENDED = "ExecutionStatus IN ('Failed', 'Canceled', 'Terminated', 'TimedOut')"
const OURS = "WorkflowType IN ('run', 'testNode', 'deliver', 'importRecords', 'exportRecords')"

/** Visibility lags behind, and Temporal's clock may differ from the database's. */
const OVERLAP_MS = 120_000
/** The period of one listing, which has the newest first: the watermark moves when the listing is complete. */
const WINDOW_MS = 600_000
/** How far back the first sweep looks. Older executions are found by their idle rows. */
const FIRST_MS = 3_600_000

/** Checks the rows whose execution has closed since the watermark, and moves the watermark. */
export async function sweepClosed(deps: SweepDeps, holder: string): Promise<void> {
  const { watermark, now } = await readWatermark(deps.db.system)
  let done = watermark?.getTime() ?? now.getTime() - FIRST_MS
  while (done < now.getTime() && (await deps.keepOn())) {
    const to = Math.min(now.getTime(), done + WINDOW_MS)
    // The last period has no end: Temporal's clock may be ahead of ours.
    const isLast = to === now.getTime()
    const query = `${ENDED} AND ${OURS} AND CloseTime >= '${iso(done - OVERLAP_MS)}' ${isLast ? '' : `AND CloseTime < '${iso(to)}'`}`
    for await (const page of pages(deps.client, query, BATCH)) {
      await checkOpen(deps, page)
      if (!(await deps.keepOn())) return
    }
    done = to
    await saveWatermark(deps.db.system, holder, new Date(done))
  }
}

/** How far back `sweepStopped` looks: visibility lags behind by less. */
const RECENT_MS = 30_000

/**
 * Checks the rows whose workflow was terminated or cancelled within the last seconds: a terminated workflow records
 * nothing, and its operator looks at the row. Cheap enough to be called every few seconds.
 */
export async function sweepStopped(deps: CheckDeps): Promise<void> {
  const query = `ExecutionStatus IN ('Terminated', 'Canceled') AND ${OURS} AND CloseTime >= '${iso(Date.now() - RECENT_MS)}'`
  for await (const page of pages(deps.client, query, BATCH)) await checkOpen(deps, page)
}

const iso = (time: number) => new Date(time).toISOString()

/** Checks the executions whose row is still open. */
async function checkOpen(deps: CheckDeps, closed: Listed[]): Promise<void> {
  const { system } = deps.db
  const of = (...sorts: string[]) => closed.filter(({ sort }) => sorts.includes(sort))
  const key = ({ organization_id, id }: Listed) => ({ organization_id, id })
  await checkRuns(deps, await listOpenRuns(system, of('run', 'node-test').map(key)))
  const releases = of('delivery').map((row) => ({ ...key(row), releases: row.number ?? 0 }))
  await checkDeliveries(deps, await listOpenDeliveries(system, releases))
  for (const sort of FILE_SORTS) {
    const starts = of(sort.noun).map((row) => ({ ...key(row), starts: row.number ?? 1 }))
    await checkFiles(deps, sort, await listOpenFiles(system, sort.table, starts))
  }
}
