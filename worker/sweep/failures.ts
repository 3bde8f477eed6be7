import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import { decodeOptionalFailureToOptionalError } from '@temporalio/common/lib/internal-non-workflow/index.js'
import { withTimeout } from './describe.ts'

type Failure = Parameters<typeof decodeOptionalFailureToOptionalError>[1]

/** The message of a failure as Temporal stores it, which may be encrypted. */
export async function messageOf({ options }: Client, failure: Failure): Promise<string> {
  const error = await decodeOptionalFailureToOptionalError(options.loadedDataConverter, failure).catch(
    (unreadable: Error) => unreadable,
  )
  return error?.message ?? ''
}

/** Events at the end of a history, among which is the last failure of a task that is tried again and again. */
const LAST_EVENTS = 10

/** Why the pending task of a workflow fails: Temporal records the first of the attempts that fail in a row. */
export async function lastTaskFailure(
  client: Client,
  { workflowId, runId }: WorkflowExecutionDescription,
): Promise<string> {
  const { namespace } = client.options
  const { history } = await withTimeout(client, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace,
      execution: { workflowId, runId },
      maximumPageSize: LAST_EVENTS,
    }),
  )
  const failed = history?.events?.find((event) => event.workflowTaskFailedEventAttributes)
  const attributes = failed?.workflowTaskFailedEventAttributes
  return attributes ? await messageOf(client, attributes.failure) : 'it times out.'
}
