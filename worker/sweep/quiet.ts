import { listQuietRuns, pickQuietRuns } from '../../db/runs/queue.ts'
import { workflowIdOf } from '../queues/runs.ts'
import { wentBack } from '../went-back.ts'
import type { CheckDeps } from './deps.ts'
import { concurrently, lookUp } from './describe.ts'
import { checkRuns } from './runs.ts'

/** An active run without a write for so long waits for a call or for a worker; or nothing carries it any more. */
const QUIET = '5 seconds'
/** Runs that are looked up each time. */
const FEW = 10
/** More active runs than some workers carry. */
const ALL = 2_000

/**
 * Resumes active runs that Temporal has lost, such as those that were started after the moment to which it was restored.
 * Until then they hold slots of their organizations and of the workers: if they hold all, nothing starts. Cheap enough
 * to be called every few seconds: it looks up a few, at random, and finds a loss the sooner the more slots it holds; only
 * then it looks up all.
 */
export async function sweepQuietRuns(deps: CheckDeps): Promise<void> {
  const { system } = deps.db
  let lost = false
  await concurrently(await pickQuietRuns(system, QUIET, FEW), async (run) => {
    // One that cannot be looked up is left to the whole sweep, which says so.
    const found = await lookUp(deps.client, workflowIdOf(run)).catch(() => undefined)
    lost ||= found === 'not_found' || (found !== undefined && wentBack(found.workflow, run))
  })
  if (lost) await checkRuns(deps, await listQuietRuns(system, QUIET, ALL))
}
