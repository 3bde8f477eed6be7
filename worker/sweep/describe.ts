import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client'
import pLimit from 'p-limit'
import type { Logger } from '../../db/process/log.ts'

/** The time limit of one call to Temporal, so that a call that hangs does not delay the others. */
const TIMEOUT_MS = 5_000
const CONCURRENT = 8

/** Does work for each row, several at a time. */
export async function concurrently<Row>(
  rows: readonly Row[],
  work: (row: Row) => Promise<void>,
): Promise<void> {
  const limit = pLimit(CONCURRENT)
  await Promise.all(rows.map((row) => limit(work, row)))
}

/** What Temporal knows about a workflow. */
export type Found = { workflow: WorkflowExecutionDescription } | 'not_found'

/** The activity that an operator has paused. */
export const pausedActivity = ({ raw }: WorkflowExecutionDescription) =>
  raw.pendingActivities?.find(({ paused }) => paused)

/** Runs a call to Temporal with a deadline. */
export const withTimeout = <T>(client: Client, call: () => Promise<T>): Promise<T> =>
  client.withDeadline(Date.now() + TIMEOUT_MS, call)

/**
 * Looks up the workflow of each row, several at a time, and passes the result to `decide`. A failure is logged, and
 * does not stop the others. @returns the rows that failed, each with its error.
 */
export async function describeEach<Row>(
  { client, log }: { client: Client; log: Logger },
  rows: Row[],
  workflowIdOf: (row: Row) => string,
  decide: (row: Row, found: Found) => Promise<void>,
): Promise<{ row: Row; error: unknown }[]> {
  const failed: { row: Row; error: unknown }[] = []
  await concurrently(rows, async (row) => {
    const workflowId = workflowIdOf(row)
    try {
      await decide(row, await lookUp(client, workflowId))
    } catch (error) {
      log.warn({ err: error, workflow_id: workflowId }, 'the sweep could not check a workflow')
      failed.push({ row, error })
    }
  })
  return failed
}

/** The newest run of the workflow. */
export async function lookUp(client: Client, workflowId: string): Promise<Found> {
  try {
    const handle = client.workflow.getHandle(workflowId)
    return { workflow: await withTimeout(client, () => handle.describe()) }
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'not_found'
    throw error
  }
}
