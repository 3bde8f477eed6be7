import { proxyLocalActivities } from '@temporalio/workflow'

const { work } = proxyLocalActivities<{ work(): Promise<void> }>({ startToCloseTimeout: '10 seconds' })

/** The hand-written workflow of the floors: one local activity. */
export async function floor(): Promise<void> {
  await work()
}
