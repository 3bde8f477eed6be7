import type { Client } from '@temporalio/client'
import { defaultPayloadConverter } from '@temporalio/common'
import type { temporal } from '@temporalio/proto'
import { searchAttributes } from '../search-attributes.ts'
import { withTimeout } from './describe.ts'

type Execution = temporal.api.workflow.v1.IWorkflowExecutionInfo

/** The row of a workflow, from its id and its organization. */
export interface Listed {
  sort: string
  organization_id: string
  id: string
  /** The number of the start, for an import or a delivery that was started again. */
  number: number | undefined
}

/**
 * The workflows of rows that match a query of Temporal's visibility, in pages. Read as Temporal stores them: the client
 * would decrypt every memo, and one without its key would end the listing.
 */
export async function* pages(client: Client, query: string, pageSize: number): AsyncGenerator<Listed[]> {
  const { namespace } = client.options
  let nextPageToken: Uint8Array = new Uint8Array()
  do {
    const page = await withTimeout(client, () =>
      client.workflowService.listWorkflowExecutions({ namespace, query, pageSize, nextPageToken }),
    )
    const rows = await Promise.all(page.executions.map((execution) => rowOf(client, execution)))
    yield rows.filter((row) => row !== undefined)
    nextPageToken = page.nextPageToken
  } while (nextPageToken.length > 0)
}

const WORKFLOW_ID = /^(run|node-test|delivery|import|export):([0-9a-f-]{36})(?::(\d+))?$/

async function rowOf(client: Client, execution: Execution): Promise<Listed | undefined> {
  const match = WORKFLOW_ID.exec(execution.execution?.workflowId ?? '')
  const organization_id = match && (await organizationOf(client, execution))
  if (!match || typeof organization_id !== 'string') return undefined
  const number = match[3] === undefined ? undefined : Number(match[3])
  return { sort: match[1]!, organization_id, id: match[2]!, number }
}

/** From the search attribute, which is never encrypted; a namespace that lacks it has the memo. */
async function organizationOf(
  { options }: Client,
  { searchAttributes: found, memo }: Execution,
): Promise<unknown> {
  const attribute = found?.indexedFields?.[searchAttributes.organization.name]
  if (attribute) return defaultPayloadConverter.fromPayload(attribute)
  const payload = memo?.fields?.organization_id
  if (!payload) return undefined
  let payloads = [payload]
  for (const codec of [...options.loadedDataConverter.payloadCodecs].reverse())
    payloads = await codec.decode(payloads).catch(() => [])
  return payloads[0] && defaultPayloadConverter.fromPayload(payloads[0])
}
