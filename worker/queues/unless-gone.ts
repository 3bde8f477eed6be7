import { WorkflowNotFoundError } from '@temporalio/client'

/** Makes a call to a workflow, which may have ended: then nothing of it needs the call. */
export async function unlessGone(call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error
  })
}
