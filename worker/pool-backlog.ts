import type { NativeConnection } from '@temporalio/worker'
import { poolTaskQueue } from '../workflows/bundle/protocol.ts'

/** temporal.api.enums.v1.TaskQueueType. */
const ACTIVITY_QUEUE = 2
const TIMEOUT_MS = 2_000

/** Asks Temporal for the calls that wait in the queues of pools. */
export class PoolBacklog {
  private connection: NativeConnection | undefined
  private readonly queues: { namespace: string; taskQueue: string }

  constructor(queues: { namespace: string; taskQueue: string }) {
    this.queues = queues
  }

  /** Sets the connection; undefined while there is none. */
  watch(connection: NativeConnection | undefined): void {
    this.connection = connection
  }

  /** The number of calls that wait for a worker; undefined if Temporal does not say. */
  async of(pool: string): Promise<number | undefined> {
    const { connection } = this
    if (!connection) return undefined
    const { namespace, taskQueue } = this.queues
    const describe = () =>
      connection.workflowService.describeTaskQueue({
        namespace,
        taskQueue: { name: poolTaskQueue(taskQueue, pool) },
        taskQueueType: ACTIVITY_QUEUE,
        reportStats: true,
      })
    const { stats } = await connection.withDeadline(Date.now() + TIMEOUT_MS, describe)
    return stats?.approximateBacklogCount?.toNumber()
  }
}
