import { z } from 'zod'
import { members, typeOfSchema } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { RUN_STATUSES } from '../shared/statuses.ts'
import { defineNode } from './define.ts'

const ID = '019a0000-0000-7000-8000-000000000001'

const output = z.strictObject({
  run_id: z.uuid(),
  workflow_id: z.uuid(),
  status: z.enum(RUN_STATUSES).describe('`completed`; with `wait: false`, `queued`.'),
  outputs: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('The outputs of the run; null with `wait: false`.'),
})

const UNAWAITED = 'with `wait: false` the outputs are null, because the run has not ended: remove `wait`'

export const runWorkflow = defineNode({
  type: 'run_workflow',
  engine: 2,
  category: 'flow',
  title: 'Run a workflow',
  alsoCalled: [
    'sub_workflow',
    'subworkflow',
    'execute_workflow',
    'call_workflow',
    'workflow',
    'child_workflow',
  ],
  description:
    'Starts a run of another workflow and waits for its end; the node fails if that run does not complete. A run cannot start a workflow that has led to it. If this run ends while it waits, the other is cancelled; what the other has completed is undone only by an `undo` of this node.',
  effect: 'write',
  effects: ['runs'],
  config: z.strictObject({
    workflow: z.string().min(1).max(200).describe('The exact name of the workflow, or its id.'),
    inputs: z.record(z.string(), z.unknown()).default({}).describe('The inputs of the run.'),
    wait: z.boolean().default(true).describe('If false, the node continues as soon as the run is queued.'),
  }),
  output,
  // Null without a wait: a path through it would silently be null, so that it has no members to read.
  outputType: ({ workflow, wait }, { catalogue }) => {
    const { properties = {}, ...rest } = typeOfSchema(output)
    const known = typeof workflow === 'string' ? catalogue.workflows?.[workflow]?.outputs : undefined
    const outputs = wait === false ? { ...members({}), empty: UNAWAITED } : (known ?? properties.outputs!)
    return { ...rest, properties: { ...properties, outputs } }
  },
  handles: () => [
    { name: 'success', description: 'The run has completed; with `wait: false`, it is queued.' },
  ],
  workflows: ({ workflow, inputs = {} }) =>
    typeof workflow === 'string'
      ? [
          {
            workflow,
            path: ['workflow'],
            ...(isObject(inputs) && { inputs: { values: inputs, path: ['inputs'] } }),
          },
        ]
      : [],
  example: {
    config: { workflow: 'Welcome', inputs: { email: '{{ trigger.record.email }}' }, wait: false },
    inputs: { trigger: { record: { email: 'ada@example.com' } } },
    output: { run_id: ID, workflow_id: ID, status: 'queued', outputs: null },
  },
  async run({ workflow, inputs, wait }, { runs }) {
    const started = await runs.start(workflow, inputs)
    const output = { ...started, status: 'queued' as const, outputs: null }
    return wait ? { wait_for_run: started.run_id, output } : { output }
  },
})
