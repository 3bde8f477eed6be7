import { z } from 'zod'
import { checkEventNames, checkEventWhen } from '../language/check-events.ts'
import { parseDuration } from '../language/duration.ts'
import { NodeError } from '../language/node-error.ts'
import { NULL, typeOfSchema, UNKNOWN, unionOf, type ValueType } from '../language/value-types.ts'
import { EVENT_NAME, EVENT_NAME_LENGTH, RECORD_EVENTS } from '../shared/events.ts'
import type { Catalogue } from './catalogue.ts'
import { defineNode } from './define.ts'
import { duration } from './fields.ts'
import { conditionsIn, leftOutConditions } from './left-out-conditions.ts'
import type { EventAnswer } from './wait-for.ts'

/** The members of `event` in the `when` of a `wait_for_event`, which are those of the node's output. */
export const EVENT_ROOT_MEMBERS = [
  'id',
  'name',
  'created_at',
  'record',
  'data',
  'previous',
  'changed',
] as const
const MAX_EVENTS = 20
const name = z.string().min(1).max(EVENT_NAME_LENGTH)

const result = z.strictObject({
  id: z.uuid().nullable().describe('The id of the event; null after a timeout, like all other fields.'),
  name: z.string().nullable(),
  created_at: z.iso.datetime().nullable(),
  record: z.record(z.string(), z.unknown()).nullable().describe('The record, if the event is about one.'),
  data: z.record(z.string(), z.unknown()).nullable().describe('The data of any other event.'),
  previous: z.record(z.string(), z.unknown()).nullable().describe('The old values of changed fields.'),
  changed: z
    .array(z.string())
    .nullable()
    .describe('The names of changed fields; empty unless the event is an update.'),
})

/** The type of an event with one of these names, as conditions read it. */
export function eventType(names: readonly unknown[], catalogue: Catalogue): ValueType {
  const isKnown = names.every((name) => typeof name === 'string' && RECORD_EVENTS.includes(name))
  const { properties, ...output } = typeOfSchema(result)
  const record = isKnown
    ? unionOf([...names.map((name) => catalogue.eventData(String(name)) ?? UNKNOWN), NULL])
    : properties!.record!
  return { ...output, properties: { ...properties, record } }
}

const EXAMPLE: EventAnswer = {
  id: '019a0000-0000-7000-8000-000000000002',
  name: 'deal.won',
  created_at: '2026-01-08T09:30:00.000Z',
  record: { id: '019a0000-0000-7000-8000-000000000001', name: 'Acme renewal', amount: '1250.00' },
  data: null,
  previous: { stage: 'negotiation' },
  changed: ['stage'],
}

export const waitForEvent = defineNode({
  type: 'wait_for_event',
  engine: 3,
  category: 'events',
  title: 'Wait for an event',
  alsoCalled: ['await_event', 'on_event', 'listen', 'wait_event'],
  description:
    'Waits until an event occurs, and continues with it. The wait is durable, also over months. With `timeout` it leaves by `timeout` if no event has come in time.',
  effect: 'pure',
  outputOnly: false,
  late: { when: 'event' },
  config: z.strictObject({
    event: z
      .union([name, z.array(name).min(1).max(MAX_EVENTS)])
      .describe(
        'The name of the event, such as `deal.won`, or a list of names: the first event ends the wait.',
      ),
    record_id: z
      .uuid()
      .optional()
      .describe('Only events about the record of this id, such as `{{ trigger.record.id }}`.'),
    when: z
      .string()
      .optional()
      .describe(
        `A placeholder that must hold, such as \`{{ event.record.amount > inputs.least }}\`. \`event\` has ${EVENT_ROOT_MEMBERS.join(', ')}; other values are those of the moment at which the wait began.`,
      ),
    since: z
      .enum(['now', 'run_start'])
      .default('now')
      .describe(
        '`run_start`: an event that came before the wait counts too, if it came after the start of the run, or after the event that triggered it.',
      ),
    timeout: duration('1s', '365d').optional().describe('How long to wait at most. Default: without limit.'),
  }),
  output: result,
  outputType: ({ event }, { catalogue }) => eventType([event].flat(), catalogue),
  handles: ({ timeout }) => [
    { name: 'received', description: 'The event has occurred.' },
    ...(timeout === undefined ? [] : [{ name: 'timeout', description: 'No event came in time.' }]),
  ],
  awaits: ({ event }) =>
    Array.isArray(event)
      ? event.map((one, index) => ({ event: one, path: ['event', index] }))
      : [{ event, path: ['event'] }],
  check: ({ event, record_id, when }) => [
    ...leftOutConditions(conditionsIn('record_id', record_id)),
    ...checkEventNames(event).map((problem) => ({ ...problem, path: ['event', ...problem.path] })),
    ...(typeof when === 'string' ? checkEventWhen(when, EVENT_ROOT_MEMBERS) : []).map((problem) => ({
      ...problem,
      path: ['when'],
    })),
  ],
  example: {
    config: {
      event: 'deal.won',
      record_id: '{{ trigger.record.id }}',
      when: '{{ event.record.amount > inputs.least }}',
      timeout: '30d',
    },
    inputs: {
      trigger: { record: { id: '019a0000-0000-7000-8000-000000000001' } },
      inputs: { least: 1000 },
    },
    answer: { answer: EXAMPLE, answered_by: null, answered_at: EXAMPLE.created_at },
    output: EXAMPLE,
    handle: 'received',
  },
  run({ event, record_id, when, since, timeout }, { now }) {
    const events = [event].flat()
    const wrong = events.find((name) => !EVENT_NAME.test(name))
    if (wrong !== undefined)
      throw new NodeError('unknown_event', `${wrong.slice(0, 100)} is not an event name: <entity>.<action>.`)
    const expires_at = timeout === undefined ? null : new Date(now.getTime() + parseDuration(timeout)!)
    return {
      wait_for: { type: 'event', events, record_id, filter: when, since, expires_at },
      output: NO_EVENT,
    }
  },
  answered({ answer }) {
    if (answer === null) return { output: NO_EVENT, handle: 'timeout' }
    return { output: answer as EventAnswer, handle: 'received' }
  },
})

const NO_EVENT = {
  id: null,
  name: null,
  created_at: null,
  record: null,
  data: null,
  previous: null,
  changed: null,
}
