import type { z } from 'zod'
import { findNodeType } from '../nodes/index.ts'
import { type ConfigIssue, checkShape } from './config.ts'
import { type Problem, pointer } from './errors.ts'
import { flowText, repairHint } from './repair.ts'
import { rawEdge, rawNode, specNode } from './schema.ts'
import { keysAt, memberOf, shapeOf } from './shapes.ts'

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
    const [first, second] = issue.path
    const node = first === 'nodes' && typeof second === 'string' ? { node_id: second } : {}
    // The parts of a trigger depend on each other: its hint is the whole of it.
    const path = first === 'trigger' && !issue.keys ? ['trigger'] : issue.path
    const place = pointer(...issue.path)
    if (issue.keys)
      return issue.keys.map((key) => ({
        code: 'unknown_key',
        message: `unknown key ${key.slice(0, 100)}`,
        path: `${place}${pointer(key)}`,
        atKey: true,
        ...node,
        hint: () => misplaced(value, issue.path, key) ?? hintFor(schema, value, { ...issue, keys: [key] }),
      }))
    const name = issue.path.map(String).join('.')
    const missing = issue.message === 'is missing'
    return [
      {
        code: missing ? 'missing_key' : 'schema',
        message: `${name} ${wording(issue, value)}`.trim(),
        path: pointer(...(missing ? issue.path : path)),
        ...node,
        hint: () => hintFor(schema, value, { ...issue, path }) ?? hintFor(schema, value, issue),
      },
    ]
  })
}

/** Of a node, only its own schema is asked: a spec has hundreds of them. */
function hintFor(schema: z.ZodType, value: unknown, issue: ConfigIssue): string | undefined {
  const [first, second, ...inner] = issue.path
  const node = memberOf(memberOf(value, 'nodes'), second ?? '')
  if (first !== 'nodes' || second === undefined || !isObject(node) || Array.isArray(node))
    return repairHint(schema, value, issue)
  return repairHint(typeof second === 'number' ? rawNode : specNode, node, { ...issue, path: inner })
}

/** The hint for a setting that was written beside `config` instead of within. */
function misplaced(value: unknown, path: readonly PropertyKey[], key: string): string | undefined {
  const [first, id, ...rest] = path
  const node = memberOf(memberOf(value, 'nodes'), id ?? '')
  if (first !== 'nodes' || rest.length > 0 || !isObject(node) || typeof node.type !== 'string') return undefined
  const type = findNodeType(node.type)
  const config = isObject(node.config) ? node.config : {}
  if (!type || !keysAt(shapeOf(type.config), { ...node, ...config }, []).includes(key)) return undefined
  const settings = keysAt(shapeOf(type.config), { ...node, ...config }, [])
  const moved = Object.entries(node).filter(([name]) => settings.includes(name) && !(name in specNode.shape))
  const whole = flowText({ ...config, ...Object.fromEntries(moved) })
  return whole.length > 2_000 ? `write ${key} within \`config\`` : `remove it, and write \`config: ${whole}\``
}

/** Lists and mappings in words of YAML. */
function wording({ path, message, code }: ConfigIssue, value: unknown): string {
  if (code !== 'invalid_type') return message
  const at = path.reduce<unknown>((inner, key) => memberOf(inner, key), value)
  const [, expected] = /expected (\w+)/.exec(message) ?? []
  const wanted = expected === undefined ? undefined : WORDS[expected]
  const got = at === null ? 'empty' : Array.isArray(at) ? 'a list' : isObject(at) ? 'a mapping' : undefined
  if (!wanted) return message
  return `must be ${wanted}${got ? `, but is ${got}` : `, but is ${JSON.stringify(at)?.slice(0, 100)}`}`
}

const WORDS: Record<string, string> = {
  record: 'a mapping',
  object: 'a mapping',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
