import type { z } from 'zod'
import { checkShape } from './config.ts'
import { nearestName, type Problem, pointer } from './errors.ts'
import { rawEdge, rawNode, specNode } from './schema.ts'

/** Placeholder for a missing node type, which is reported as missing. */
export const MISSING_TYPE = '?'

/** The problems of the spec except those inside node configs. */
export function schemaProblems(schema: z.ZodObject, value: unknown): Problem[] {
  if (!isObject(value))
    return [{ code: 'schema', message: 'must be a mapping with name and nodes', path: '' }]
  return [...issuesOf(schema, value), ...standIns(value)]
}

/** Refuses this placeholder as an authored type. */
function standIns(value: Record<string, unknown>): Problem[] {
  if (!isObject(value.nodes)) return []
  return Object.entries(value.nodes).flatMap(([key, node]): Problem[] =>
    isObject(node) && node.type === MISSING_TYPE
      ? [
          {
            code: 'unknown_node_type',
            message: `${MISSING_TYPE} is not a node type`,
            path: pointer('nodes', key, 'type'),
          },
        ]
      : [],
  )
}

/**
 * The valid parts of a value, so that the other checks can run and all problems are reported at once. Undefined if
 * nothing can be checked.
 */
export function salvage<S extends z.ZodObject>(schema: S, value: unknown): z.output<S> | undefined {
  if (!isObject(value)) return undefined
  const whole = schema.safeParse(value)
  if (whole.success) return whole.data
  const kept = fitting(schema, value)
  if (isObject(value.nodes) && Object.hasOwn(schema.shape, 'nodes'))
    kept.nodes = Array.isArray(value.nodes)
      ? value.nodes.filter(isObject).map((node) => salvaged(rawNode, node))
      : Object.fromEntries(
          Object.entries(value.nodes).map(([id, node]) => [
            id,
            salvaged(specNode, isObject(node) ? node : {}),
          ]),
        )
  if (Array.isArray(value.edges)) kept.edges = value.edges.filter((edge) => rawEdge.safeParse(edge).success)
  const parsed = schema.safeParse({ name: 'x', ...kept })
  return parsed.success ? parsed.data : undefined
}

const salvaged = (schema: z.ZodObject, node: Record<string, unknown>) => ({
  type: MISSING_TYPE,
  ...fitting(schema, node),
})

function fitting(schema: z.ZodObject, value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema.shape).flatMap(([key, member]) =>
      Object.hasOwn(value, key) && (member as z.ZodType).safeParse(value[key]).success
        ? [[key, value[key]]]
        : [],
    ),
  )
}

function issuesOf(schema: z.ZodType, value: unknown): Problem[] {
  return checkShape(schema, value).flatMap((issue): Problem[] => {
    const path = pointer(...issue.path)
    const [first, second] = issue.path
    const node = first === 'nodes' && typeof second === 'string' ? { node_id: second } : {}
    if (issue.keys)
      return issue.keys.map((key) => ({
        code: 'unknown_key',
        message: `unknown key ${key.slice(0, 100)}`,
        path: `${path}${pointer(key)}`,
        atKey: true,
        ...node,
        ...nearestName(key, knownKeys(issue.path)),
      }))
    const name = issue.path.map(String).join('.')
    const missing = issue.message === 'is missing'
    return [
      { code: missing ? 'missing_key' : 'schema', message: `${name} ${issue.message}`.trim(), path, ...node },
    ]
  })
}

/** The keys to suggest for a misspelt one: those of a node, or the outermost. */
const knownKeys = (path: PropertyKey[]) =>
  path.length === 2 && path[0] === 'nodes'
    ? Object.keys(specNode.shape)
    : ['name', 'description', 'trigger', 'inputs', 'nodes', 'outputs', 'settings']

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
