import { z } from 'zod'
import { defineNode } from './define.ts'

export const stop = defineNode({
  type: 'stop',
  engine: 1,
  laterUses: [{ engine: 2, isUsed: (config) => 'outputs' in config }],
  category: 'flow',
  title: 'Stop',
  alsoCalled: ['end', 'finish', 'terminate', 'fail', 'exit', 'return', 'stop_and_error'],
  description:
    'Ends the run as completed or failed, and cancels the nodes that are still running in other branches.',
  effect: 'pure',
  config: z.strictObject({
    status: z.enum(['completed', 'failed']).default('completed'),
    message: z.string().max(2000).optional().describe('The reason; shown on the run.'),
    outputs: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        'The outputs of the run. Default: the `outputs` of the workflow if the run is completed, none if it failed.',
      ),
  }),
  output: z.strictObject({
    status: z.enum(['completed', 'failed']),
    message: z.string().optional(),
    outputs: z.record(z.string(), z.unknown()).optional(),
  }),
  handles: () => [],
  fallible: false,
  endsWith: ({ outputs }) => outputs,
  example: {
    config: { status: 'failed', message: 'No email for {{ inputs.name }}' },
    inputs: { inputs: { name: 'Ada' } },
    output: { status: 'failed', message: 'No email for Ada' },
  },
  run: (end) => ({ end, output: end }),
})
