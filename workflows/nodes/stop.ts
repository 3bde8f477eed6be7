import { z } from 'zod'
import { defineNode } from './define.ts'

export const stop = defineNode({
  type: 'stop',
  category: 'flow',
  title: 'Stop',
  description:
    'Ends the run as completed or failed, and cancels the nodes that are still running in other branches.',
  effect: 'pure',
  config: z.strictObject({
    status: z.enum(['completed', 'failed']).default('completed'),
    message: z.string().max(2000).optional().describe('The reason; shown on the run.'),
  }),
  output: z.strictObject({ status: z.enum(['completed', 'failed']), message: z.string().optional() }),
  handles: () => [],
  fallible: false,
  example: {
    config: { status: 'failed', message: 'No email for {{ inputs.name }}' },
    inputs: { inputs: { name: 'Ada' } },
    output: { status: 'failed', message: 'No email for Ada' },
  },
  run({ status, message }) {
    const end = message === undefined ? { status } : { status, message }
    return { end, output: end }
  },
})
