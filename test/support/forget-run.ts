import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import { until } from './until.ts'

/** Deletes the workflow of a run in Temporal, as if Temporal's database had been deleted. */
export async function forgetRun(client: Client, id: string): Promise<void> {
  const workflowId = `run:${id}`
  await client.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId },
  })
  await until(async () => !(await isKnown(client, workflowId)))
}

const isKnown = (client: Client, workflowId: string): Promise<boolean> =>
  client.workflow
    .getHandle(workflowId)
    .describe()
    .then(
      () => true,
      (error) => {
        if (error instanceof WorkflowNotFoundError) return false
        throw error
      },
    )
