import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { filesTaskQueue } from './protocol.ts'

/** Stored in Temporal histories: members may be added; existing members keep their meaning. Holds no rows of files. */
export interface FileInput {
  organization_id: string
  /** The id of the import, export or collection. */
  id: string
  /** The number of starts so far, this one included; this workflow serves that start. */
  start: number
  /** The label in the timeline of the Temporal UI. */
  summary: string
}

/** The progress of an import, export or embedding. */
export interface FileAnswer {
  /** `running`: there is more to do. */
  status: 'running' | 'stopped' | 'completed' | 'failed'
  /** For setCurrentDetails. */
  details: string
}

interface Files {
  importRows(input: FileInput): Promise<FileAnswer>
  exportRows(input: FileInput): Promise<FileAnswer>
  embedSome(input: FileInput): Promise<FileAnswer>
}

/** Turns of one workflow, of several seconds each: a history of a few thousand events. */
const MAX_TURNS = 500

/** Imports the rows of a file as records. */
export const importRecords = (input: FileInput): Promise<{ status: string }> =>
  untilDone(input, 'importRows', () => continueAsNew<typeof importRecords>(input))

/** Exports records as the rows of a file. */
export const exportRecords = (input: FileInput): Promise<{ status: string }> =>
  untilDone(input, 'exportRows', () => continueAsNew<typeof exportRecords>(input))

/** Makes the vectors of a collection's passages. Its turns call another service, so calls of nodes share their slots. */
export const embedPassages = (input: FileInput): Promise<{ status: string }> =>
  untilDone(input, 'embedSome', () => continueAsNew<typeof embedPassages>(input), workflowInfo().taskQueue)

/**
 * Each turn is an activity that works for some seconds, transaction by transaction, and reports its progress. The row
 * stores the position, so a repeated turn continues from there. A stop changes the row; the turn reads it before its
 * next transaction.
 */
async function untilDone(
  input: FileInput,
  name: keyof Files,
  renew: () => Promise<never>,
  taskQueue = filesTaskQueue(workflowInfo().taskQueue),
): Promise<{ status: string }> {
  const work = proxyActivities<Files>({
    taskQueue,
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
    // An unavailable database delays the file but never fails it.
    retry: { initialInterval: '500 ms', backoffCoefficient: 2, maximumInterval: '30 seconds' },
    summary: input.summary,
  })
  for (let turn = 1; ; turn++) {
    const { status, details } = await work[name](input)
    setCurrentDetails(details)
    if (status !== 'running') return { status }
    if (turn === MAX_TURNS || workflowInfo().continueAsNewSuggested) return renew()
  }
}
