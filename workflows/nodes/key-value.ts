import { z } from 'zod'
import type { KeyValues } from '../effects/key-values.ts'
import { parseDuration } from '../language/duration.ts'
import {
  BOOLEAN,
  listOf,
  members,
  NULL,
  NUMBER,
  TEXT,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import { KEY_VALUES } from '../shared/limits.ts'
import { type Authored, defineNode } from './define.ts'
import { duration } from './fields.ts'

const key = z
  .string()
  .min(1)
  .max(KEY_VALUES.key)
  .describe(
    'The key, shared by all workflows of the organization: prefix it with a topic, `seen:{{ inputs.id }}`.',
  )
const ttl = duration('1s', '1825d').optional()

const READS: unknown[] = ['get', 'list']
const FREES: unknown[] = ['delete']
const reads = ({ operation }: Authored) => READS.includes(operation)

const operations = z.discriminatedUnion('operation', [
  z.strictObject({
    operation: z.literal('get'),
    key,
    default: z.unknown().optional().describe('The value if the key is absent. Default: null.'),
  }),
  z.strictObject({
    operation: z.literal('set'),
    key,
    value: z
      .unknown()
      .refine((value) => value !== undefined, 'is required')
      .refine(
        (value) => sizeOf(value) <= KEY_VALUES.bytes,
        `may have at most ${KEY_VALUES.bytes} bytes as JSON`,
      )
      .describe('Any value.'),
    ttl: ttl.describe('After this time the key is absent. Default: never.'),
    only_if_absent: z
      .boolean()
      .default(false)
      .describe('Whether an existing value stays: `stored` then says whether this node was the first.'),
  }),
  z.strictObject({
    operation: z.literal('increment'),
    key,
    by: z
      .union([
        z.number().min(-KEY_VALUES.number).max(KEY_VALUES.number),
        z
          .string()
          .regex(/^-?\d{1,12}(\.\d{1,8})?$/, 'must be a number')
          .transform(Number),
      ])
      .default(1)
      .describe('What to add; negative to subtract. Money, which is a text, is a number too.'),
    ttl: ttl.describe('The time after which a new number is absent; an existing one keeps its time.'),
  }),
  z.strictObject({ operation: z.literal('delete'), key }),
  z.strictObject({
    operation: z.literal('list'),
    prefix: z.string().max(KEY_VALUES.key).default('').describe('How the keys begin.'),
    limit: z.int().min(1).max(KEY_VALUES.page).default(50),
  }),
])

const TIME = unionOf([TEXT, NULL])

/** The outputs by operation. */
const FIELDS: Record<string, ValueType> = {
  get: members({ key: TEXT, value: UNKNOWN, found: BOOLEAN, expires_at: TIME }),
  set: members({ key: TEXT, value: UNKNOWN, stored: BOOLEAN, expires_at: TIME }),
  increment: members({ key: TEXT, value: NUMBER, expires_at: TIME }),
  delete: members({ key: TEXT, deleted: BOOLEAN }),
  list: members({
    data: listOf(members({ key: TEXT, value: UNKNOWN, expires_at: TIME })),
    has_more: BOOLEAN,
  }),
}

export const keyValue = defineNode({
  type: 'key_value',
  engine: 4,
  category: 'data',
  title: 'Key-value store',
  alsoCalled: [
    'kv',
    'store',
    'storage',
    'data_store',
    'cache',
    'counter',
    'increment',
    'static_data',
    'redis',
  ],
  description:
    'Keeps values between runs: counters, handled ids, the time of the last run. Each write happens once per run, node and item, also in retries; with another key or value it is a new one. `increment` is atomic; with `only_if_absent`, only one of concurrent runs stores its value. Outputs: get `{key, value, found}`, set `{key, value, stored}`, increment `{key, value}`, delete `{key, deleted}`, list `{data, has_more}`.',
  effect: (config) => (reads(config) ? 'read' : 'write'),
  grows: (config) => !reads(config) && !FREES.includes(config.operation),
  effects: ['keyValues'],
  config: operations,
  output: z.record(z.string(), z.unknown()),
  handles: () => [{ name: 'success', description: 'The operation succeeded; an absent key is no error.' }],
  outputType: ({ operation }) =>
    typeof operation === 'string' && Object.hasOwn(FIELDS, operation) ? FIELDS[operation]! : UNKNOWN,
  example: {
    config: {
      operation: 'set',
      key: 'handled:{{ inputs.order }}',
      value: true,
      only_if_absent: true,
      ttl: '30d',
    },
    inputs: { inputs: { order: 'A-7' } },
    output: {
      key: 'handled:A-7',
      value: true,
      stored: true,
      expires_at: '2026-01-31T00:00:00.000Z',
    },
  },
  run: async (config, { keyValues }) => ({ output: await operate(config, keyValues) }),
})

async function operate(
  config: z.output<typeof operations>,
  keyValues: KeyValues,
): Promise<Record<string, unknown>> {
  switch (config.operation) {
    case 'get': {
      const found = await keyValues.get(config.key)
      if (found) return { ...found, found: true }
      return { key: config.key, value: config.default ?? null, found: false, expires_at: null }
    }
    case 'set':
      return {
        ...(await keyValues.set(config.key, config.value, {
          ttlMs: milliseconds(config.ttl),
          onlyIfAbsent: config.only_if_absent,
        })),
      }
    case 'increment':
      return { ...(await keyValues.increment(config.key, config.by, milliseconds(config.ttl))) }
    case 'delete':
      return keyValues.delete(config.key)
    case 'list':
      return keyValues.list(config.prefix, config.limit)
  }
}

const milliseconds = (text: string | undefined) => (text === undefined ? null : parseDuration(text)!)

const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? '')
