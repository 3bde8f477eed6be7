import { writeFileSync } from 'node:fs'
import type { Client } from '@temporalio/client'
import proto from '@temporalio/proto'

const { History } = proto.temporal.api.history.v1

/** Stores a history for the replay tests, without stack traces, which contain paths of the recording machine. */
export function saveHistory(file: URL, history: proto.temporal.api.history.v1.IHistory): void {
  const copy = History.decode(History.encode(history).finish())
  emptyStackTraces(copy)
  writeFileSync(file, History.encode(copy).finish())
}

/** The history of the first run of a workflow, if it has continued as new. */
export async function firstHistory(client: Client, workflowId: string) {
  const { raw } = await client.workflow.getHandle(workflowId).describe()
  const firstRunId = raw.workflowExecutionInfo?.firstRunId ?? undefined
  return client.workflow.getHandle(workflowId, firstRunId).fetchHistory()
}

function emptyStackTraces(part: unknown): void {
  if (typeof part !== 'object' || part === null || part instanceof Uint8Array) return
  if ('stackTrace' in part && part.stackTrace) part.stackTrace = ''
  for (const member of Object.values(part)) emptyStackTraces(member)
}
