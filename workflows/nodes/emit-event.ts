import { z } from 'zod'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { EVENT_NAME, isServiceEvent } from '../shared/events.ts'
import { isObject } from '../shared/is-object.ts'
import { defineNode } from './define.ts'

export const emitEvent = defineNode({
  type: 'emit_event',
  engine: 1,
  category: 'events',
  title: 'Emit event',
  alsoCalled: ['event', 'publish', 'publish_event', 'raise_event', 'trigger_event'],
  description:
    'Raises a custom event, such as `invoice.paid`, which outgoing webhooks deliver. The names of events that the service itself raises are refused.',
  effect: 'write',
  effects: ['events'],
  emits: 'event',
  config: z.strictObject({
    event: z
      .string()
      .regex(EVENT_NAME, 'must be <entity>.<action> in lower case, such as invoice.paid')
      .refine((name) => !isServiceEvent(name), 'is raised by the service itself: choose another name'),
    data: z.record(z.string(), z.unknown()).default({}).describe('The `data` that receivers get.'),
  }),
  output: z.strictObject({ event_id: z.string(), event: z.string() }),
  raises: ({ event, data }) => ({
    events: typeof event === 'string' && !hasPlaceholder(event) ? [event] : [],
    fields: isObject(data) ? Object.keys(data) : [],
  }),
  handles: () => [{ name: 'success', description: 'The event is stored; its deliveries follow.' }],
  example: {
    config: { event: 'invoice.paid', data: { id: '{{ inputs.invoice }}', amount: '120.00' } },
    inputs: { inputs: { invoice: 'INV-7' } },
    output: { event_id: '019a0000-0000-7000-8000-000000000001', event: 'invoice.paid' },
  },
  run: async ({ event, data }, { events }) => ({
    output: { event_id: await events.emit(event, data), event },
  }),
})
