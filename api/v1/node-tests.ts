import { z } from 'zod'
import { AppError, invalid } from '../../db/errors.ts'
import { referencesOf } from '../../db/records/model/kind.ts'
import { entities, entityNamed, entityNames } from '../../db/records/model/kinds/index.ts'
import { createNodeTest } from '../../db/runs/runs.ts'
import { durationOf, getNodeTest } from '../../db/runs/views.ts'
import { checkConfig, saidOf } from '../../workflows/definition/config.ts'
import type { NodeType } from '../../workflows/nodes/define.ts'
import { type Route, route } from '../http/route.ts'
import { requireScopes, type Scope } from '../http/scopes.ts'
import { requireNodeType } from './nodes.ts'

/** The test itself may take a minute; a caller that waits longer finds something else wrong. */
const WAIT_SECONDS = 75

const effect = z.enum(['pure', 'read', 'write', 'external'])

const preview = z.object({
  object: z.literal('node_test_preview'),
  status: z.literal('confirmation_required'),
  confirmed: z.literal(false),
  preview: z.object({
    node_type: z.string(),
    effect,
    config: z.record(z.string(), z.unknown()),
    inputs: z.record(z.string(), z.unknown()),
    warnings: z.array(z.string()),
  }),
})

const tested = z
  .object({
    object: z.literal('node_test'),
    status: z.enum(['completed', 'failed', 'running']).meta({
      description:
        'running: a retry under the same Idempotency-Key, of a request that died while the test ran; how it went is not known.',
    }),
    node_type: z.string(),
    output: z.unknown().optional(),
    handle: z.string().nullable().optional(),
    rendered_config: z.unknown().optional(),
    duration_ms: z.int().optional(),
    log: z
      .array(z.object({ time: z.iso.datetime(), message: z.string() }))
      .optional()
      .meta({ description: 'What it did: requests, records and events, without values that may be secret.' }),
    error: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'NodeTest' })

export const nodeTestRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/workflows/nodes/test',
    scope: 'workflows:run',
    id: 'testNode',
    tag: 'Workflows',
    summary: 'Run one node by itself',
    description:
      'Really runs it, with all its effects, once `confirm` is true. `inputs` are the roots of its placeholders: `{"inputs": {…}, "nodes": {"find": {"output": {…}}}, "trigger": {…}}`; other names are inputs by that name. A node that works on records also needs the scope of those records, and of those that it links them with.',
    body: z.object({
      node_type: z.string().min(1).max(100),
      config: z.record(z.string(), z.unknown()).default({}),
      inputs: z.record(z.string(), z.unknown()).default({}),
      confirm: z.boolean().default(false),
    }),
    response: { status: 200, schema: z.union([preview, tested]) },
    example: {
      node_type: 'set_fields',
      config: { fields: { greeting: 'Hello {{ inputs.name }}' } },
      inputs: { inputs: { name: 'Ada' } },
      confirm: true,
    },
    handler: async ({ body, caller, deps, signal, tenant, commit, doNotStore }) => {
      const { node_type, config, confirm } = body
      const type = requireNodeType(node_type)
      const effect = typeof type.effect === 'function' ? type.effect(config) : type.effect
      requireScopes(caller, recordScopes(type, effect, config))
      const inputs = rootsOf(body.inputs)
      if (!confirm) {
        doNotStore()
        const warnings = [
          ...(effect === 'external' ? ['Reaches outside of the service.'] : []),
          ...checkConfig(type.config, config)
            .flatMap((issue) => saidOf(issue, node_type))
            .map(({ message }) => `The config is invalid: ${message}.`),
        ]
        return {
          object: 'node_test_preview',
          status: 'confirmation_required',
          confirmed: false,
          preview: { node_type, effect, config, inputs, warnings },
        }
      }
      const started = performance.now()
      const id = await tenant((tx) =>
        createNodeTest(tx, { node: { node_type, title: type.title, config }, inputs }),
      )
      await commit({ object: 'node_test', status: 'running', node_type }, WAIT_SECONDS)
      const ended = await deps.runEnds.wait(id, WAIT_SECONDS * 1_000, signal, () =>
        tenant((tx) => getNodeTest(tx, id)),
      )
      if (!ended) throw new AppError('unavailable', 'the test did not end in time')
      const { node, error, log } = ended
      return {
        object: 'node_test',
        status: node?.status === 'completed' ? 'completed' : 'failed',
        node_type,
        output: node?.output ?? null,
        handle: node?.handle ?? null,
        rendered_config: node?.input ?? null,
        duration_ms: (node && durationOf(node)) ?? Math.round(performance.now() - started),
        log,
        ...(error ? { error } : {}),
      }
    },
  }),
]

const ROOTS = new Set(['trigger', 'inputs', 'nodes', 'item', 'index'])

/** Sample values by the roots of placeholders; what is no root is taken as an input of that name. */
function rootsOf(given: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(given)
  const roots = entries.filter(([name]) => ROOTS.has(name))
  const others = Object.fromEntries(entries.filter(([name]) => !ROOTS.has(name)))
  const inputs = given.inputs ?? {}
  if (typeof inputs !== 'object' || inputs === null)
    throw invalid([{ loc: ['body', 'inputs', 'inputs'], msg: 'must be an object', type: 'type_error' }])
  return { ...Object.fromEntries(roots), inputs: { ...others, ...inputs } }
}

/** Which records the node would touch; where a placeholder decides, every kind that it could be. */
function recordScopes(type: NodeType, effect: string, config: Record<string, unknown>): Scope[] {
  if (type.category !== 'records') return []
  const { entity, target, fields } = config
  const level = effect === 'read' ? 'read' : 'write'
  const named = [entity, target, ...linkedBy(entity, fields)].filter((name) => name !== undefined)
  const open = named.some((name) => typeof name !== 'string' || name.includes('{{'))
  const kinds = open ? entityNames : named.flatMap((name) => entityNamed(String(name)) ?? [])
  return [...new Set(kinds)].map((kind) => `${kind}:${level}` as const)
}

/** The kinds that the fields of a record would link it with. */
function linkedBy(entity: unknown, fields: unknown): unknown[] {
  if (!isObject(fields)) return [fields]
  const { associations = [] } = fields
  const kind = entityNamed(String(entity))
  const references = kind ? referencesOf(entities[kind]).filter(([name]) => Object.hasOwn(fields, name)) : []
  return [
    ...references.map(([, { to }]) => to),
    ...[associations].flat().map((one) => (isObject(one) ? one.object : one)),
  ]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
