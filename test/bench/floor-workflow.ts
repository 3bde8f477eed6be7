import { proxyLocalActivities } from '@temporalio/workflow'

const { work } = proxyLocalActivities<{ work(): Promise<void> }>({ startToCloseTimeout: '10 seconds' })

/** The hand-written workflow of the floors: one local activity, or several in a row. */
export async function floor(times: number): Promise<void> {
  for (let time = 0; time < times; time++) await work()
}
