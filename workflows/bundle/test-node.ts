import { proxyActivities } from '@temporalio/workflow'
import type { EndStatus } from '../shared/statuses.ts'
import type { NodeTestInput } from './protocol.ts'

/** Tests one node outside of any workflow. The activity records the outcome; it has one attempt. */
export async function testNode(input: NodeTestInput): Promise<{ status: EndStatus }> {
  const { testOneNode } = proxyActivities<{ testOneNode(input: NodeTestInput): Promise<EndStatus> }>({
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
    retry: { maximumAttempts: 1 },
  })
  return { status: await testOneNode(input) }
}
