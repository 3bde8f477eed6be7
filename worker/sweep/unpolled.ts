import type { WorkflowExecutionDescription } from '@temporalio/client'
import { optionalTsToMs } from '@temporalio/common/lib/time.js'
import type { System } from '../../db/postgres/tenancy.ts'
import { listReportedPools, type ReportedPool } from '../../db/queue/pool-workers.ts'
import { poolTaskQueue } from '../../workflows/bundle/protocol.ts'

/** temporal.api.enums.v1.PendingActivityState. */
const SCHEDULED = 1

/** The pools by name, read once for many runs, and only if one of them waits for a pool. */
export type Pools = () => Promise<ReadonlyMap<string, ReportedPool>>

export function poolsReader(system: System): Pools {
  let pools: ReturnType<Pools> | undefined
  return () => {
    pools ??= listReportedPools(system).then((all) => new Map(all.map((one) => [one.pool, one])))
    return pools
  }
}

/** Why a workflow waits, if one of its activities is in the queue of a pool without a live worker. */
export async function unpolledReason(
  { raw, taskQueue }: WorkflowExecutionDescription,
  pools: Pools,
): Promise<string | undefined> {
  const prefix = poolTaskQueue(taskQueue, '')
  for (const { state, activityType, activityOptions, scheduledTime } of raw.pendingActivities ?? []) {
    const queue = activityOptions?.taskQueue?.name ?? ''
    if (state !== SCHEDULED || !queue.startsWith(prefix)) continue
    const pool = queue.slice(prefix.length)
    const reported = (await pools()).get(pool)
    if (reported && reported.workers > 0) continue
    const scheduled = optionalTsToMs(scheduledTime)
    const since = scheduled === undefined ? '' : ` since ${new Date(scheduled).toISOString()}`
    const last = reported ? `the last one was seen at ${reported.seen_at.toISOString()}` : 'none has ever run'
    return `${activityType?.name} waits for a worker of the pool ${pool}${since}; ${last}: start one with WORKER_POOL=${pool}, and the run continues.`
  }
  return undefined
}
