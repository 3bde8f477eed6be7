import type { Client } from '@temporalio/client'
import { until } from './until.ts'

/**
 * Waits until Temporal has got two heartbeats of the workflow's activity: by the answer to one the worker learns of a
 * pause.
 */
export async function untilHeartbeats(client: Client, workflowId: string): Promise<void> {
  const last = async () => {
    const { raw } = await client.workflow.getHandle(workflowId).describe()
    return JSON.stringify(raw.pendingActivities?.[0]?.lastHeartbeatTime)
  }
  for (const _ of [1, 2]) {
    const before = await last()
    await until(async () => (await last()) !== before)
  }
}
