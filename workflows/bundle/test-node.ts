import { proxyActivities, workflowInfo } from '@temporalio/workflow'
import type { EndStatus } from '../shared/statuses.ts'
import { type NodeTestInput, poolTaskQueue } from './protocol.ts'

/** Tests one node outside of any workflow. The activity records the outcome; it has one attempt. */
export async function testNode(input: NodeTestInput): Promise<{ status: EndStatus }> {
  const { testOneNode } = proxyActivities<{ testOneNode(input: NodeTestInput): Promise<EndStatus> }>({
    ...(input.pool !== undefined && {
      taskQueue: poolTaskQueue(workflowInfo().taskQueue, input.pool),
      // The API found a worker of the pool before the test. Whoever tests waits no longer than for a slow node.
      scheduleToStartTimeout: '30 seconds',
    }),
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
    retry: { maximumAttempts: 1 },
  })
  return { status: await testOneNode(input) }
}
