import { z } from 'zod'
import { parseDuration } from '../language/duration.ts'
import { defineNode } from './define.ts'
import { duration } from './fields.ts'

export const delay = defineNode({
  type: 'delay',
  engine: 1,
  category: 'time',
  title: 'Delay',
  alsoCalled: ['wait', 'sleep', 'pause', 'timer'],
  description:
    'Waits for a duration, then continues. The wait is durable: restarts of the service do not change its end.',
  effect: 'pure',
  config: z.strictObject({ for: duration('1ms', '365d').describe('How long to wait.') }),
  output: z.strictObject({ until: z.iso.datetime().describe('When the wait ends.') }),
  handles: () => [{ name: 'success', description: 'The wait is over.' }],
  example: { config: { for: '5m' }, output: { until: '2026-01-01T00:05:00.000Z' } },
  run(config, ctx) {
    const until = new Date(ctx.now.getTime() + parseDuration(config.for)!)
    return { wait_until: until, output: { until: until.toISOString() } }
  },
})
