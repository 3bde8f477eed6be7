import { z } from 'zod'
import { parseDuration } from '../language/duration.ts'
import { SIGNAL } from '../shared/limits.ts'
import { defineNode } from './define.ts'
import { duration } from './fields.ts'
import type { SignalAnswer } from './wait-for.ts'

export const waitForSignal = defineNode({
  type: 'wait_for_signal',
  engine: 3,
  category: 'events',
  title: 'Wait for a signal',
  alsoCalled: ['signal', 'await_signal', 'wait_signal', 'callback'],
  description:
    'Waits until a signal of that name is sent to the run (`POST /v1/runs/{run_id}/signal`), and continues with its payload. A signal that came before the wait counts; each is taken by one node. With `timeout` it leaves by `timeout` if none has come in time.',
  effect: 'pure',
  outputOnly: false,
  config: z.strictObject({
    name: z.string().min(1).max(SIGNAL.name).describe('The name of the signal.'),
    timeout: duration('1s', '365d').optional().describe('How long to wait at most. Default: without limit.'),
  }),
  output: z.strictObject({
    payload: z.unknown().describe('The payload of the signal; null after a timeout.'),
    sent_at: z.iso.datetime().nullable(),
  }),
  handles: ({ timeout }) => [
    { name: 'received', description: 'The signal has come.' },
    ...(timeout === undefined ? [] : [{ name: 'timeout', description: 'No signal came in time.' }]),
  ],
  example: {
    config: { name: 'payment_{{ inputs.invoice }}', timeout: '7d' },
    inputs: { inputs: { invoice: 'INV-7' } },
    answer: {
      answer: { payload: { amount: '120.00' } },
      answered_by: null,
      answered_at: '2026-01-08T09:30:00.000Z',
    },
    output: { payload: { amount: '120.00' }, sent_at: '2026-01-08T09:30:00.000Z' },
    handle: 'received',
  },
  run({ name, timeout }, { now }) {
    const expires_at = timeout === undefined ? null : new Date(now.getTime() + parseDuration(timeout)!)
    return { wait_for: { type: 'signal', name, expires_at }, output: { payload: null, sent_at: null } }
  },
  answered({ answer, answered_at }) {
    if (answer === null) return { output: { payload: null, sent_at: null }, handle: 'timeout' }
    const { payload } = answer as SignalAnswer
    return { output: { payload, sent_at: answered_at }, handle: 'received' }
  },
})
