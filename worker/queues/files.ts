import type { Client } from '@temporalio/client'
import {
  type FileStart,
  type FileTable,
  failFileStart,
  markFilesStarted,
} from '../../db/files/moves/queue.ts'
import { type ClaimedFile, queuedFiles } from '../../db/files/queue.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import type { FileInput } from '../../workflows/bundle/files.ts'
import { summaryOf } from '../../workflows/bundle/summary.ts'
import type { NamespaceAttributes } from '../namespace-attributes.ts'
import type { Queue } from '../relay.ts'
import { type StartWorkflow, workflowStarter } from './start-workflow.ts'

/** Imports, exports, embeddings of collections; they differ only in names. */
export interface FileSort {
  table: FileTable
  workflow: 'importRecords' | 'exportRecords' | 'embedPassages'
  noun: 'import' | 'export' | 'embedding'
}

export const FILE_SORTS: FileSort[] = [
  { table: 'imports', workflow: 'importRecords', noun: 'import' },
  { table: 'exports', workflow: 'exportRecords', noun: 'export' },
  { table: 'knowledge_embeddings', workflow: 'embedPassages', noun: 'embedding' },
]

/** Each start is a new workflow, because a workflow id is used once. */
export const fileWorkflowId = (sort: FileSort, { id, starts }: Pick<FileStart, 'id' | 'starts'>) =>
  starts <= 1 ? `${sort.noun}:${id}` : `${sort.noun}:${id}:${starts}`

/** Imports to read, exports to write, collections to embed. */
export function filesQueue(
  sort: FileSort,
  { taskQueue, attributes }: { taskQueue: string; attributes: NamespaceAttributes },
): Queue<ClaimedFile> {
  const startWorkflow = workflowStarter(taskQueue, attributes)
  return {
    name: sort.table,
    channel: 'agx_files',
    claim: queuedFiles[sort.table].claim,
    start: (client, row) => startFile(startWorkflow, client, sort, row),
    started: (system, rows) => markFilesStarted(system, sort.table, rows),
    refused: (db, row, reason) =>
      db.tenant(row.organization_id, SYSTEM, (tx) => failFileStart(tx, sort.table, row, reason)),
  }
}

function startFile(
  startWorkflow: StartWorkflow,
  client: Client,
  sort: FileSort,
  row: ClaimedFile,
): Promise<unknown> {
  const { organization_id, id, starts } = row
  const summary = summaryOf(`${sort.noun} of ${row.subject}`)
  return startWorkflow<(input: FileInput) => Promise<unknown>>(client, {
    workflow: sort.workflow,
    workflowId: fileWorkflowId(sort, row),
    organizationId: organization_id,
    summary,
    memo: { [`${sort.noun}_id`]: id },
    args: [{ organization_id, id, start: starts, summary }],
  })
}
