import type { Client } from '@temporalio/client'
import { withTimeout } from './describe.ts'

/** The row of a workflow, from its id and memo. */
export interface Listed {
  sort: string
  organization_id: string
  id: string
  /** The number of the start, for an import or a delivery that was started again. */
  number: number | undefined
}

/** The workflows of rows that match a query of Temporal's visibility, in pages. */
export async function* pages(client: Client, query: string, pageSize: number): AsyncGenerator<Listed[]> {
  const executions = client.workflow.list({ query, pageSize })[Symbol.asyncIterator]()
  let page: Listed[] = []
  for (;;) {
    const { done, value } = await withTimeout(client, () => executions.next())
    if (done) break
    const listed = rowOf(value.workflowId, value.memo)
    if (listed) page.push(listed)
    if (page.length < pageSize) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

const WORKFLOW_ID = /^(run|node-test|delivery|import|export):([0-9a-f-]{36})(?::(\d+))?$/

function rowOf(workflowId: string, memo: Record<string, unknown> | undefined): Listed | undefined {
  const match = WORKFLOW_ID.exec(workflowId)
  if (!match || typeof memo?.organization_id !== 'string') return undefined
  const number = match[3] === undefined ? undefined : Number(match[3])
  return { sort: match[1]!, organization_id: memo.organization_id, id: match[2]!, number }
}
