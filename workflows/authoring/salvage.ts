import type { z } from 'zod'
import { type ConfigIssue, checkShape } from '../language/config.ts'
import { add, type Problem, pointer, REMOVE } from '../language/problems.ts'
import { flowText, repairHint } from '../language/repair.ts'
import { keysAt, memberOf, shapeOf } from '../language/shapes.ts'
import { decision } from '../nodes/condition.ts'
import { meantType } from '../nodes/index.ts'
import { inputName, input as inputSchema, nodeId, rawEdge, rawNode, specNode } from './schema.ts'

/** Stands for a missing node type, which is reported as missing. */
export const MISSING_TYPE = '?'

/**
 * The valid parts of a value, and its problems except those inside node configs. A value without problems is parsed only
 * once: that takes a tenth of a validation.
 */
export function readBy<S extends z.ZodObject>(
  schema: S,
  value: unknown,
): { problems: Problem[]; parts: z.output<S> | undefined } {
  const whole = isContainer(value) ? schema.safeParse(value) : undefined
  return whole?.success
    ? { problems: standIns(value as Record<string, unknown>), parts: whole.data }
    : { problems: schemaProblems(schema, value), parts: salvage(schema, value) }
}

function schemaProblems(schema: z.ZodObject, value: unknown): Problem[] {
  if (!isContainer(value))
    return [{ code: 'schema', message: 'must be a mapping with name and nodes', path: '' }]
  return [...issuesOf(schema, value), ...standIns(value)]
}

/** Refuses MISSING_TYPE as an authored type. */
function standIns(value: Record<string, unknown>): Problem[] {
  if (!isContainer(value.nodes)) return []
  return Object.entries(value.nodes).flatMap(([key, node]): Problem[] =>
    isContainer(node) && node.type === MISSING_TYPE
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
function salvage<S extends z.ZodObject>(schema: S, value: unknown): z.output<S> | undefined {
  if (!isContainer(value)) return undefined
  const kept = fitting(schema, value)
  if (isContainer(value.nodes) && Object.hasOwn(schema.shape, 'nodes'))
    kept.nodes = Array.isArray(value.nodes)
      ? value.nodes.filter(isContainer).map((node) => salvaged(rawNode, node))
      : Object.fromEntries(
          Object.entries(value.nodes).map(([id, node]) => [
            id,
            salvaged(specNode, isContainer(node) ? node : {}),
          ]),
        )
  if (value.inputs !== undefined && kept.inputs === undefined)
    kept.inputs = Object.fromEntries(
      namedInputs(value.inputs).map(([name, one]) => [
        name,
        inputSchema.safeParse(one).success ? one : { type: 'any', default: null },
      ]),
    )
  if (isContainer(value.outputs) && kept.outputs === undefined) kept.outputs = { ...value.outputs }
  if (Array.isArray(value.edges)) kept.edges = value.edges.filter((edge) => rawEdge.safeParse(edge).success)
  const parsed = schema.safeParse({ name: 'x', ...kept })
  return parsed.success ? parsed.data : undefined
}

/** The inputs with valid names, also if they are written as a list. */
function namedInputs(inputs: unknown): [string, unknown][] {
  if (!isContainer(inputs)) return []
  if (!Array.isArray(inputs))
    return Object.entries(inputs).filter(([name]) => inputName.safeParse(name).success)
  return inputs.flatMap((one): [string, unknown][] => {
    const name = isContainer(one) ? (one.name ?? Object.keys(one)[0]) : one
    return typeof name === 'string' && inputName.safeParse(name).success ? [[name, undefined]] : []
  })
}

/** Values without effect, in place of invalid ones. */
const NEUTRAL = { retry: {}, on_error: 'fail' }

/** A node's valid members, with the keys of its config that were written beside it. */
function salvaged(schema: z.ZodObject, node: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = { type: MISSING_TYPE, ...fitting(schema, node) }
  // An invalid value is reported as invalid, not as missing.
  for (const [name, neutral] of Object.entries(NEUTRAL))
    if (Object.hasOwn(node, name) && !Object.hasOwn(kept, name)) kept[name] = neutral
  const moved = misplacedIn(node)
  if (Object.keys(moved).length === 0) return kept
  return { ...kept, config: { ...(isContainer(node.config) ? node.config : {}), ...moved } }
}

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
    const id = first === 'nodes' && second !== undefined ? idOf(value, second) : undefined
    const node = id === undefined ? {} : { node_id: id }
    const place = pointer(...issue.path)
    if (issue.keys)
      return issue.keys.map((key) => ({
        code: 'unknown_key',
        message: isUndone(issue.path, key)
          ? 'an undo has no undo of its own'
          : `unknown key ${key.slice(0, 100)}`,
        path: `${place}${pointer(key)}`,
        atKey: true,
        ...node,
        hint: () =>
          (isUndone(issue.path, key) ? REMOVE : undefined) ??
          triggerHint(value, issue.path, key) ??
          misplacedHint(value, issue.path, key) ??
          hintFor(schema, value, { ...issue, keys: [key] }),
      }))
    const name = issue.path.map(String).join('.')
    const missing = issue.message === 'is missing'
    // The parts of a trigger depend on each other: the hint corrects it as a whole.
    const whole =
      first === 'trigger'
        ? hintFor(schema, value, { code: issue.code, message: issue.message, path: ['trigger'] })
        : undefined
    return [
      {
        code: missing ? 'missing_key' : 'schema',
        message: `${name} ${issue.message}`.trim(),
        path: whole === undefined ? place : '/trigger',
        ...node,
        hint: () => whole ?? nameHint(issue) ?? hintFor(schema, value, issue),
      },
    ]
  })
}

const isUndone = (path: readonly PropertyKey[], key: string) => key === 'undo' && path.at(-1) === 'undo'

/** The hint for a member of `trigger` that other services have. */
function triggerHint(value: unknown, path: readonly PropertyKey[], key: string): string | undefined {
  if (path.length !== 1 || path[0] !== 'trigger') return undefined
  const trigger = memberOf(value, 'trigger')
  const type = memberOf(trigger, 'type')
  if (key === 'when' || key === 'filter' || key === 'conditions')
    return type === 'webhook' || type === 'schedule'
      ? `only an event trigger has a condition: begin with a node \`${decision(type === 'webhook' ? 'trigger.payload.…' : '…')}\``
      : undefined
  if (type !== 'schedule' || !['at', 'time', 'hour'].includes(key)) return undefined
  const [, hour, minute = '0'] = /^(\d{1,2})(?::([0-5]\d))?$/.exec(String(memberOf(trigger, key))) ?? []
  if (hour === undefined || Number(hour) > 23)
    return 'a time is in `cron`, minute and hour first: `cron: "30 8 * * 1-5"`'
  const cron = `cron: "${Number(minute)} ${Number(hour)} * * *"`
  const every = memberOf(trigger, 'every')
  if (
    memberOf(trigger, 'cron') !== undefined ||
    (every !== undefined && !/^(1d|24h|day|daily)$/.test(String(every)))
  )
    return 'a time is in `cron`, minute and hour first: `cron: "30 8 * * 1-5"`'
  return every === undefined
    ? `replace it by \`${cron}\``
    : `write \`${cron}\` in place of \`every\` and \`${key}\``
}

/** The hint for a workflow without a name, and for a node whose id has other characters. */
function nameHint({ path, message }: ConfigIssue): string | undefined {
  const [first, id] = path
  if (first === 'name' && message === 'is missing') return add('name: My workflow')
  if (first !== 'nodes' || path.length !== 2 || typeof id !== 'string') return undefined
  const better = id.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')
  return better !== id && nodeId.safeParse(better).success ? `did you mean ${better}?` : undefined
}

/** The id of the node at a key of `nodes`: in a raw definition the key is an index. */
function idOf(value: unknown, key: PropertyKey): string | undefined {
  if (typeof key === 'string') return key
  const id = memberOf(memberOf(memberOf(value, 'nodes'), key), 'id')
  return typeof id === 'string' ? id : undefined
}

/** The hint for an issue; for an issue of a node, only that node is checked: a spec can have hundreds. */
function hintFor(schema: z.ZodType, value: unknown, issue: ConfigIssue): string | undefined {
  const [first, second, ...inner] = issue.path
  const node = memberOf(memberOf(value, 'nodes'), second ?? '')
  if (first !== 'nodes') return repairHint(schema, withoutNodes(schema, value), issue)
  if (second === undefined || !isContainer(node) || Array.isArray(node))
    return repairHint(schema, value, issue)
  return repairHint(typeof second === 'number' ? rawNode : specNode, node, { ...issue, path: inner })
}

/** The value without nodes and unknown keys: there may be thousands, and each finding checks the value again. */
function withoutNodes(schema: z.ZodType, value: unknown): unknown {
  if (!isContainer(value) || !('shape' in schema)) return value
  const known = Object.keys(schema.shape as object).filter((key) => Object.hasOwn(value, key))
  return Object.fromEntries(known.map((key) => [key, key === 'nodes' ? {} : value[key]]))
}

/** The hint for a key that was written beside `config` instead of within. */
function misplacedHint(value: unknown, path: readonly PropertyKey[], key: string): string | undefined {
  const [first, id, ...rest] = path
  const node = memberOf(memberOf(value, 'nodes'), id ?? '')
  if (first !== 'nodes' || rest.length > 0 || !isContainer(node)) return undefined
  const moved = misplacedIn(node)
  if (!Object.hasOwn(moved, key)) return undefined
  const whole = flowText({ ...(isContainer(node.config) ? node.config : {}), ...moved })
  return whole.length > 2_000 ? `write ${key} within \`config\`` : `remove it, and write \`config: ${whole}\``
}

/** The keys of a node's config that are written beside it. */
function misplacedIn(node: Record<string, unknown>): Record<string, unknown> {
  const type = typeof node.type === 'string' ? meantType(node.type) : undefined
  const others = Object.entries(node).filter(
    ([name]) => !Object.hasOwn(specNode.shape, name) && name !== 'id',
  )
  if (!type || others.length === 0) return {}
  const config = isContainer(node.config) ? node.config : {}
  const keys = keysAt(shapeOf(type.config), { ...node, ...config }, [])
  return Object.fromEntries(others.filter(([name]) => keys.includes(name) && !Object.hasOwn(config, name)))
}

/** An object or a list. */
const isContainer = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
