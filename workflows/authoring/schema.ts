import { z } from 'zod'
import { CONCURRENCY_POLICIES, OVERLAP_POLICIES, RATE_POLICIES } from '../language/definition.ts'
import { parseDuration } from '../language/duration.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { POOL_NAME, POOL_RULE } from '../language/pool.ts'
import { EVENT_NAME_LENGTH } from '../shared/events.ts'
import { CANCEL_ON, NODE_RATE, RUN_KEY, SPEC } from '../shared/limits.ts'

/** The shapes of the YAML authoring spec and of the raw definition. Graphs and node configs are checked separately. */

const name = z.string().trim().min(1).max(200)
const description = z.string().max(5_000)
export const nodeId = z
  .string()
  .max(64)
  .regex(/^[a-z_][a-z0-9_]*$/, 'must be lower case letters, digits and underscores, such as find_contact')
  .refine((id) => id !== 'end', '`end` is reserved for `next`: choose another id')

const positive = z
  .string()
  .refine((text) => (parseDuration(text) ?? 0) > 0, 'must be a duration above zero, such as 500ms, 30s or 5m')
  .meta({ examples: ['30s'] })
const upTo = (most: string) =>
  positive.refine((text) => (parseDuration(text) ?? 0) <= parseDuration(most)!, `must be at most ${most}`)

/** The durations that Temporal's Schedules take. */
const wholeSeconds = (least: string, most: string) =>
  z
    .string()
    .refine((text) => {
      const ms = parseDuration(text) ?? -1
      return ms >= parseDuration(least)! && ms <= parseDuration(most)! && ms % 1_000 === 0
    }, `must be a duration of whole seconds from ${least} to ${most}, such as 15m`)
    .meta({ examples: ['15m'] })

const retry = z
  .strictObject({
    max_attempts: z.int().min(1).max(100).optional(),
    initial_interval: upTo('1d').optional(),
    backoff: z.number().min(1).max(100).optional(),
    max_interval: upTo('7d').optional(),
  })
  .refine(
    ({ initial_interval, max_interval }) =>
      max_interval === undefined ||
      (parseDuration(max_interval) ?? 0) >= (parseDuration(initial_interval ?? '1s') ?? 0),
    { path: ['max_interval'], message: 'must not be shorter than initial_interval (default 1s)' },
  )
  .meta({ examples: [{ max_attempts: 3 }] })

export const trigger = z.union([
  z.enum(['manual', 'webhook']).transform((type) => ({ type })),
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('manual') }),
    z.strictObject({ type: z.literal('webhook') }),
    z.strictObject({
      type: z.literal('event'),
      events: z.array(z.string()).min(1),
      when: z.string().optional(),
    }),
    z.strictObject({
      type: z.literal('schedule'),
      cron: z.string().min(1).optional(),
      every: wholeSeconds('1m', '365d').optional(),
      offset: wholeSeconds('0s', '365d').optional(),
      timezone: z.string().default('UTC'),
      overlap: z.enum(OVERLAP_POLICIES).optional(),
      catchup_window: wholeSeconds('10s', '365d').optional(),
      jitter: wholeSeconds('1s', '1d').optional(),
    }),
  ]),
])

export const INPUT_TYPES = ['string', 'number', 'boolean', 'object', 'array', 'any'] as const
export const input = z.union([
  z.enum(INPUT_TYPES).transform((type) => ({ type })),
  z
    .strictObject({
      type: z.enum(INPUT_TYPES).default('any'),
      description: description.optional(),
      required: z.boolean().optional(),
      default: z.unknown().optional(),
      enum: z
        .array(z.string().min(1).max(200))
        .min(1)
        .max(100)
        .refine((values) => new Set(values).size === values.length, 'has a value twice')
        .optional()
        .describe('The allowed values of an input of type string.'),
    })
    .refine(({ type, enum: allowed }) => allowed === undefined || type === 'string', {
      path: ['enum'],
      message: 'is only for inputs of type string',
    }),
])

const pool = z.string().regex(POOL_NAME, POOL_RULE)

/** The members of a node in both forms. */
const node = {
  type: z.string().min(1).describe('A node type of the catalogue.'),
  title: z.string().max(200).optional().describe('The display name; default: the id.'),
  config: z.record(z.string(), z.unknown()).default({}).describe('The settings of its type.'),
  retry: retry.optional().describe('The retries of an external node: up to `max_attempts` attempts in all.'),
  timeout: upTo('1d').optional().describe('The time limit of one attempt of an external node.'),
  pool: pool.optional().describe('The worker pool of its calls.'),
  rate: z
    .strictObject({ limit: z.int().min(1).max(NODE_RATE.calls), per: upTo(NODE_RATE.span) })
    .optional()
    .describe('At most `limit` attempts within any `per`, in all runs of the workflow; others wait.')
    .meta({ examples: [{ limit: 10, per: '1m' }] }),
  on_error: z
    .enum(['fail', 'continue', 'end'])
    .optional()
    .describe(
      'If the node fails and its `error` handle has no edge: `fail` the run (default), `continue` after it (not with several handles), or `end` this branch (same as `next: {error: end}`).',
    ),
  when: z
    .union([z.string(), z.boolean().transform(String)])
    .optional()
    .describe(
      'A placeholder, such as `{{ inputs.amount > 100 }}`. If it renders false, null or an empty text, the node is skipped, and the run continues after it: by `done`, by `approved`; not for others with several handles.',
    ),
  join: z
    .enum(['all', 'any'])
    .optional()
    .describe(
      'When a node with several incoming edges starts: at `all` (default) when each of them is settled and one was taken; at `any` at the first one taken, and later ones are ignored. It is skipped if none is taken.',
    ),
}

/** The members of a cleanup node: the others order nodes, and these run one after the other. */
const cleanupNode = z
  .strictObject({
    id: nodeId.optional().describe('Default: the id of the node with `_undo`, or `on_cancel` or `finally`.'),
    type: node.type,
    title: node.title,
    config: node.config,
    retry: node.retry,
    timeout: node.timeout,
    pool: node.pool,
    on_error: z
      .enum(['fail', 'continue'])
      .optional()
      .describe(
        '`fail` (default): its failure is added to the error of the run. In both cases the others run.',
      ),
    when: node.when,
  })
  .meta({ title: 'node' })

const cleanupNodes = z.union([cleanupNode, z.array(cleanupNode).min(1).max(SPEC.cleanupNodes)])

const undo = cleanupNodes
  .optional()
  .describe(
    'Compensates the effect of this node. It runs if the run fails or is cancelled after this node has completed: the undo of the node that completed last runs first. It reads `nodes.<this>.output` and `run.error`.',
  )

const targets = z.union([z.string(), z.array(z.string()).min(1)])

export const specNode = z.strictObject({
  ...node,
  undo,
  next: z
    .union([targets, z.record(z.string(), targets)])
    .optional()
    .describe(
      'An id, a list of ids (in parallel), `end`, or a map from handle to any of these. Without it: the node after this one (see Flow).',
    ),
})

export const rawNode = z.strictObject({ id: nodeId, ...node, undo })

export const rawEdge = z.strictObject({ from: z.string(), handle: z.string().default(''), to: z.string() })

/** A template that divides the runs of a workflow. */
const key = z
  .string()
  .max(RUN_KEY.template)
  .refine(
    hasPlaceholder,
    'must have a placeholder: without one all runs share the key, as they do without key',
  )
  .meta({ examples: ['{{ trigger.record.id }}'] })

const runsAtOnce = z.int().min(1).max(1_000)
const concurrency = z
  .union([
    runsAtOnce,
    z.strictObject({
      policy: z.enum(CONCURRENCY_POLICIES).default('queue'),
      limit: runsAtOnce.optional(),
      key: key.optional(),
    }),
  ])
  .superRefine((value, ctx) => {
    if (typeof value !== 'object' || value.policy !== 'allow') return
    for (const name of ['limit', 'key'] as const)
      if (value[name] !== undefined)
        ctx.addIssue({
          code: 'custom',
          path: [name],
          message: 'has no effect with the policy allow: remove it, or choose queue, skip or cancel_running',
        })
  })
  .describe(
    'The limit of concurrent runs, and what happens to a run above it: `queue` it (also if only a number is given), `skip` it, `cancel_running` older runs, or `allow` any number (the default). `limit` is 1 by default. Waiting runs count. With `key` it is the limit of each key.',
  )

const debounce = z
  .strictObject({ key: key.optional(), for: upTo(RUN_KEY.span), at_most: upTo(RUN_KEY.span).optional() })
  .refine(
    (value) =>
      value.at_most === undefined || (parseDuration(value.at_most) ?? 0) >= (parseDuration(value.for) ?? 0),
    {
      path: ['at_most'],
      message: 'must not be shorter than for',
    },
  )
  .describe(
    `Starts once a key has been quiet \`for\` so long, or \`at_most\` (${RUN_KEY.span}) after its first start, with the last trigger; earlier ones are skipped.`,
  )

const rate = z
  .strictObject({
    key: key.optional(),
    limit: z.int().min(1).max(RUN_KEY.starts),
    per: upTo(RUN_KEY.span),
    policy: z.enum(RATE_POLICIES).default('queue'),
  })
  .describe('At most `limit` starts of a key within any `per`; others wait, or are skipped (`policy: skip`).')

const eventName = z.string().min(1).max(EVENT_NAME_LENGTH)
const cancelRule = z.strictObject({
  event: z.union([eventName, z.array(eventName).min(1).max(CANCEL_ON.events)]),
  when: z.union([z.string().max(CANCEL_ON.when), z.boolean().transform(String)]).optional(),
})

const cancelOn = z
  .union([cancelRule, z.array(cancelRule).min(1).max(CANCEL_ON.rules)])
  .describe(
    'Events that cancel open runs: `{event: contact.deleted, when: "{{ event.record.id == trigger.record.id }}"}`. `when` also reads `inputs` and `run` of the run.',
  )

export const inputName = z.string().regex(/^[A-Za-z_]\w{0,63}$/, 'must be letters, digits and underscores')

const common = {
  name: name.default('Untitled'),
  description: description.optional(),
  trigger: trigger.default({ type: 'manual' }).describe('What starts runs.'),
  inputs: z
    .record(inputName, input)
    .default({})
    .describe('The inputs of a run, by name: a type, or `{type, description, required, default}`.'),
  outputs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('The result of a run, by name: placeholders or plain values.'),
  settings: z
    .strictObject({
      concurrency: concurrency.optional(),
      debounce: debounce.optional(),
      rate: rate.optional(),
      cancel_on: cancelOn.optional(),
      timeout: upTo('365d').optional().describe('The time limit of a run.'),
      expected_within: upTo('365d')
        .optional()
        .describe('A run that is open for longer raises `workflow.late`.'),
      on_cancel: cleanupNodes
        .optional()
        .describe('Runs when a begun run is cancelled, after the undo of its nodes.'),
      finally: cleanupNodes
        .optional()
        .describe('Runs at the end of each begun run, however it ends, but for a termination.'),
      cleanup_timeout: upTo('30d')
        .optional()
        .describe('The time limit of all undo, on_cancel and finally nodes of a run together; default: 1h.'),
      pool: pool.optional().describe('For all nodes.'),
      error_workflow: name
        .optional()
        .describe('The name or id of the workflow that each failed run starts, once.'),
    })
    .meta({ title: 'mapping' })
    .default({}),
}

export const specSchema = z.strictObject({
  ...common,
  name: name.describe('The name of the workflow; runs by name need it to be unique.'),
  nodes: z
    .record(nodeId, specNode)
    .refine((nodes) => Object.keys(nodes).length > 0, 'needs at least one node')
    .refine((nodes) => Object.keys(nodes).length <= SPEC.nodes, `may have at most ${SPEC.nodes} nodes`)
    .describe(
      'The steps, by id (lower case letters, digits and underscores), in order; a run starts at the first.',
    ),
})

export const definitionSchema = z.strictObject({
  ...common,
  nodes: z.array(rawNode).min(1).max(SPEC.nodes),
  edges: z.array(rawEdge).max(SPEC.edges).default([]),
})

export type Spec = z.output<typeof specSchema>
export type SpecNode = z.output<typeof specNode>
