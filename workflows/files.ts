import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { filesTaskQueue } from './protocol.ts'

/** In stored histories: it may grow, and what is there keeps its meaning. Rows of files never travel here. */
export interface FileInput {
  organization_id: string
  /** Of the import or export. */
  id: string
  /** How often it had been started, this time included; this workflow serves that start. */
  start: number
  /** What is being done, for the timeline of the Temporal UI. */
  summary: string
}

/** Where an import or export stands. */
export interface FileAnswer {
  /** `running`: there is more to do. */
  status: 'running' | 'stopped' | 'completed' | 'failed'
  /** For setCurrentDetails. */
  details: string
}

interface Files {
  importRows(input: FileInput): Promise<FileAnswer>
  exportRows(input: FileInput): Promise<FileAnswer>
}

/** Several seconds each: a history of a few thousand events. */
const MAX_TURNS = 500

/** Rows of a file become records. */
export const importRecords = (input: FileInput): Promise<{ status: string }> =>
  untilDone(input, 'importRows', () => continueAsNew<typeof importRecords>(input))

/** Records become rows of a file. */
export const exportRecords = (input: FileInput): Promise<{ status: string }> =>
  untilDone(input, 'exportRows', () => continueAsNew<typeof exportRecords>(input))

/**
 * Each turn is an activity that works for some seconds, one transaction after the other, and says how far it came. The
 * row keeps the place, so a turn that is done again goes on where the one before got to; a stop is a change of the row,
 * which the turn sees before its next transaction.
 */
async function untilDone(
  input: FileInput,
  name: keyof Files,
  renew: () => Promise<never>,
): Promise<{ status: string }> {
  const work = proxyActivities<Files>({
    taskQueue: filesTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
    // A database that is away holds the file up, and never fails it.
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
