import { listed, type Port } from './define.ts'

/** Runs of the organization's workflows. */
export interface Runs {
  /** Queues a run of a workflow, given by its exact name or its id. Throws NodeError. */
  start(workflow: string, inputs: Record<string, unknown>): Promise<StartedRun>
}

export interface StartedRun {
  run_id: string
  workflow_id: string
}

export const runs: Port<Runs> = {
  classes: ['write'],
  scoped: false,
  words: {
    start: {
      call: (workflow, inputs) =>
        [`starting the workflow ${workflow}`, ...listed('inputs', Object.keys(inputs))].join(', '),
      result: ({ run_id }, workflow) => `started the workflow ${workflow}, run ${run_id}`,
    },
  },
}
