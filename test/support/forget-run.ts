import { type Client, WorkflowNotFoundError } from '@temporalio/client'

/** Deletes the workflow of a run in Temporal, as if Temporal's database had been deleted. */
export async function forgetRun(client: Client, id: string): Promise<void> {
  const workflowId = `run:${id}`
  await client.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId },
  })
  for (const end = Date.now() + 15_000; await isKnown(client, workflowId); ) {
    if (Date.now() > end) throw new Error(`Temporal still knows ${workflowId}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
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
