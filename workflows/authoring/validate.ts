import type { z } from 'zod'
import type {
  CallTimeout,
  Definition,
  Edge,
  Finding,
  OutsideReferences,
  PoolReference,
  ServiceReference,
  ValidationResult,
  WorkflowReference,
} from '../language/definition.ts'
import { parseDuration } from '../language/duration.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { isWarning } from '../language/finding-codes.ts'
import { countValues } from '../language/measure.ts'
import { namedPool } from '../language/pool.ts'
import { type Problem, pointer } from '../language/problems.ts'
import { Texts, textsIn } from '../language/texts.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import { SPEC } from '../shared/limits.ts'
import { checkCalls } from './check-calls.ts'
import { checkCancelOn } from './check-cancel-on.ts'
import { checkCases } from './check-cases.ts'
import { checkChain } from './check-chain.ts'
import { checkContinued } from './check-continued.ts'
import { checkDecisions } from './check-decisions.ts'
import { checkEndsInLoops } from './check-ends-in-loops.ts'
import { checkHtml } from './check-html.ts'
import { checkJsonTexts } from './check-json-texts.ts'
import { checkLoopTails } from './check-loop-tail.ts'
import { checkMeaning } from './check-meaning.ts'
import {
  checkErrorWorkflow,
  checkGraph,
  checkLikelyMistakes,
  checkNodes,
  correctTypes,
} from './check-nodes.ts'
import { checkPages } from './check-pages.ts'
import { checkReferences } from './check-references.ts'
import { checkResponses } from './check-responses.ts'
import { checkExpected } from './check-settings.ts'
import { checkTrigger } from './check-trigger.ts'
import { checkTurns } from './check-turns.ts'
import { checkTypes } from './check-types.ts'
import { checkUrls } from './check-urls.ts'
import { checkWaits } from './check-waits.ts'
import { checkCleanup, withCleanup } from './cleanup.ts'
import { envReferences } from './env-references.ts'
import { eventReferences } from './event-references.ts'
import { defaultHandle } from './flow.ts'
import { ForeignTexts } from './foreign-texts.ts'
import { graphOf } from './graph.ts'
import { bodiesOf, checkBodies, resultNodes } from './loops.ts'
import { common, type Lowered, lowerSpec, nodeSpec } from './lower.ts'
import { type Position, parseYaml } from './parse.ts'
import { readBy } from './salvage.ts'
import { definitionSchema, specSchema } from './schema.ts'
import { Types } from './types.ts'
import { withoutVerbatim } from './verbatim.ts'

export interface Validated {
  result: ValidationResult
  /** Present if the result is valid. */
  definition?: Definition
  references: OutsideReferences
}

/** Checks a YAML authoring spec; every finding has its position in the text. Never throws. */
export function validateSpec(yamlText: string, catalogue: Catalogue): Validated {
  const { value, problems, locate } = parseYaml(yamlText)
  const place: Place = ({ line, column, path, atKey }) =>
    line && column ? { line, column } : locate(path, atKey)
  if (problems.some(({ code }) => code === 'yaml_syntax' || code === 'yaml_limit'))
    return conclude(problems, place)

  const { problems: shape, parts: salvaged } = readBy(specSchema, value)
  const ids = Object.keys(salvaged?.nodes ?? {})
  const types = correctTypes(Object.entries(salvaged?.nodes ?? {}), (index) => pointer('nodes', ids[index]!))
  const lowered = salvaged && lowerSpec({ ...salvaged, nodes: Object.fromEntries(types.corrected) })
  const found = [
    ...problems,
    ...shape,
    ...types.problems,
    ...(lowered
      ? [
          ...check(lowered, catalogue),
          ...checkCases(lowered),
          ...checkLoopTails(lowered, bodiesOf(lowered.definition)),
        ]
      : []),
  ]
  return conclude(found, place, lowered)
}

/** Checks a raw definition, `{nodes, edges, trigger, inputs, outputs}`. Never throws. */
export function validateDefinition(raw: unknown, catalogue: Catalogue): Validated {
  const limit = beyondLimits(raw)
  if (limit) return conclude([limit], () => ({}))
  const { problems: shape, parts: salvaged } = readBy(definitionSchema, raw)
  const types = correctTypes(
    (salvaged?.nodes ?? []).map((node) => [node.id, node] as const),
    (index) => pointer('nodes', index),
  )
  const lowered = salvaged && lowerRaw({ ...salvaged, nodes: types.corrected.map(([, node]) => node) })
  const found = [
    ...shape,
    ...types.problems,
    ...(lowered ? [...duplicates(lowered), ...check(lowered, catalogue)] : []),
  ]
  return conclude(found, () => ({}), lowered)
}

function beyondLimits(raw: unknown): Problem | undefined {
  const limit = (message: string): Problem => ({ code: 'schema', message, path: '' })
  if (countValues(raw, SPEC.values) > SPEC.values)
    return limit(`a definition may have at most ${SPEC.values} values`)
  if (Buffer.byteLength(JSON.stringify(raw) ?? '') > SPEC.definitionBytes)
    return limit(`a definition may have at most ${SPEC.definitionBytes / 1024} KiB as JSON`)
  return undefined
}

function check(lowered: Lowered, catalogue: Catalogue): Problem[] {
  const whole = withCleanup(lowered)
  const graph = graphOf(whole.definition, ({ type }) => findNodeType(type))
  const bodies = bodiesOf(whole.definition)
  const rendered = withoutVerbatim(whole)
  const types = new Types(rendered, bodies, catalogue)
  const foreign = new ForeignTexts(rendered, types)
  const { problems, read } = checkReferences(rendered, graph, bodies, types)
  return [
    ...checkTrigger(lowered.definition),
    ...checkChain(whole, catalogue),
    ...checkErrorWorkflow(lowered.definition),
    ...checkExpected(lowered.definition),
    ...checkCancelOn(lowered.definition),
    ...checkNodes(whole, catalogue),
    ...checkDecisions(lowered),
    ...checkCleanup(lowered, bodies),
    ...checkGraph(lowered, graph),
    ...checkBodies(lowered, bodies),
    ...checkEndsInLoops(lowered, bodies),
    ...checkTurns(lowered, bodies),
    ...checkWaits(lowered, graph),
    ...checkResponses(lowered, bodies),
    ...lowered.warnings,
    ...problems,
    ...checkTypes(rendered, types, catalogue),
    ...checkCalls(rendered, types, catalogue),
    ...checkHtml(rendered, foreign),
    ...checkUrls(rendered, foreign),
    ...checkJsonTexts(rendered, types),
    ...checkMeaning(rendered),
    ...checkPages(rendered),
    ...checkContinued(rendered),
    ...checkLikelyMistakes(whole, new Set([...read, ...resultNodes(lowered.definition, bodies)]), bodies),
  ]
}

/** Drops problems that only follow from another reported problem. */
function withoutSequels(found: Problem[]): Problem[] {
  const codes = new Set(found.map(({ code }) => code))
  const unread = codes.has('unknown_node') || codes.has('unknown_root') || codes.has('placeholder_syntax')
  const lost = new Set(
    found.flatMap(({ code, path }) =>
      ['yaml_alias', 'yaml_tag', 'yaml_value'].includes(code) ? [path] : [],
    ),
  )
  // A misspelt handle leads to the body of a loop.
  const bodiless = codes.has('unknown_handle') && codes.has('loop_body')
  // A value that cannot be a placeholder.
  // One that reads a wrong path has no type to speak of.
  const refused = new Set(
    found.flatMap(({ code, path }) => (['invalid_config', 'unknown_field'].includes(code) ? [path] : [])),
  )
  return found.filter(({ code, path, message }) => {
    if (code === 'unused_output') return !unread
    if (code === 'loop_body') return !bodiless
    if (code === 'root_not_available' && /^(item|index) /.test(message)) return !bodiless
    if (code === 'type_mismatch') return !refused.has(path)
    if (code === 'unreachable_node') return !codes.has('missing_target')
    return code.startsWith('yaml_') || !lost.has(path)
  })
}

function finding({ atKey: _, hint, ...problem }: Problem, position: Partial<Position>): Finding {
  const text = typeof hint === 'function' ? hint() : hint
  return { ...problem, ...(text === undefined ? {} : { hint: text }), ...position }
}

function lowerRaw(raw: z.output<typeof definitionSchema>): Lowered {
  const nodes = raw.nodes.map(({ id, ...node }) => nodeSpec(id, node))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const edges = raw.edges.map(({ from, handle, to }): Edge => {
    const node = byId.get(from)
    return { from, handle: handle || (node ? defaultHandle(node.type, node.config) : ''), to }
  })
  const index = new Map(nodes.map((node, at) => [node.id, at]))
  const places = new Map(edges.map((edge, at) => [edge, at]))
  return {
    definition: { ...common(raw), nodes, edges },
    texts: new Texts(),
    ends: [],
    warnings: [],
    nodePath: (id) => pointer('nodes', index.get(id) ?? ''),
    edgePath: (edge) => pointer('edges', places.get(edge) ?? ''),
  }
}

function duplicates({ definition }: Lowered): Problem[] {
  const seen = new Set<string>()
  return definition.nodes.flatMap(({ id }, index): Problem[] => {
    if (!seen.has(id)) {
      seen.add(id)
      return []
    }
    return [
      {
        code: 'duplicate_node',
        message: `duplicate node id ${id}`,
        path: pointer('nodes', index, 'id'),
        node_id: id,
      },
    ]
  })
}

type Place = (at: Pick<Problem, 'path' | 'atKey'> & Partial<Position>) => Partial<Position>

/** The reported findings. Only their places and hints are computed. */
function conclude(found: Problem[], place: Place, lowered?: Lowered): Validated {
  const errors: Finding[] = []
  const warnings: Finding[] = []
  for (const problem of withoutSequels(found)) {
    const list = isWarning(problem.code) ? warnings : errors
    if (list.length < SPEC.findings) list.push(finding(problem, place(problem)))
  }
  const valid = errors.length === 0
  const result = { valid, errors, warnings }
  const placed = <T extends { path: string; atKey?: boolean }>({ atKey, ...at }: T) => ({
    ...at,
    ...place({ path: at.path, ...(atKey && { atKey }) }),
  })
  const { workflows, services, events, pools, timeouts, env, sampled } = outsideReferences(lowered)
  const references = {
    workflows: workflows.map(({ inputs, ...one }) =>
      placed({ ...one, ...(inputs && { inputs: inputs.map(placed) }) }),
    ),
    services: services.map(placed),
    events: events.map(placed),
    pools: pools.map(placed),
    timeouts: timeouts.map(placed),
    env: env.slice(0, SPEC.findings).map(placed),
    sampled,
  }
  return { result, references, ...(valid && lowered ? { definition: lowered.definition } : {}) }
}

/** What a saved definition names that is checked in the database; paths lead into the definition. */
export const referencesIn = (definition: Definition): OutsideReferences =>
  outsideReferences(lowerRaw(definition as z.output<typeof definitionSchema>))

const outsideReferences = (authored: Lowered | undefined): OutsideReferences => {
  const lowered = authored && withCleanup(authored)
  const rendered = lowered && withoutVerbatim(lowered)
  return {
    workflows: lowered ? workflowReferences(lowered) : [],
    services: lowered ? serviceReferences(lowered) : [],
    events: lowered ? eventReferences(lowered) : [],
    pools: lowered ? poolReferences(lowered) : [],
    timeouts: lowered ? callTimeouts(lowered) : [],
    env: rendered ? envReferences(rendered) : [],
    sampled: {
      name: lowered?.definition.name ?? '',
      byWebhooks: lowered?.definition.trigger.type === 'webhook',
      nodes: lowered?.definition.nodes.map(({ id }) => id) ?? [],
    },
  }
}

function workflowReferences({ definition, nodePath }: Lowered): WorkflowReference[] {
  const { error_workflow } = definition.settings
  const inNodes = definition.nodes.flatMap(({ id, type, config }) =>
    (findNodeType(type)?.workflows(config) ?? [])
      .filter(({ workflow }) => !hasPlaceholder(workflow))
      .map(({ workflow, path, inputs }) => {
        const at = (keys: PropertyKey[]) => `${nodePath(id)}/config${pointer(...keys)}`
        const given = inputs && {
          inputs: Object.entries(inputs.values).map(([name, value]) => ({
            name,
            ...(textsIn(value).some(({ text }) => hasPlaceholder(text)) ? {} : { value }),
            node_id: id,
            path: at([...inputs.path, name]),
            atKey: true,
          })),
        }
        return { workflow, node_id: id, path: at(path), ...given }
      }),
  )
  if (error_workflow === undefined) return inNodes
  return [{ workflow: error_workflow, path: '/settings/error_workflow' }, ...inNodes]
}

const callTimeouts = ({ definition, nodePath }: Lowered): CallTimeout[] =>
  definition.nodes.flatMap(({ id, type, config, timeout }) => {
    const timeout_ms = timeout === undefined ? undefined : parseDuration(timeout)
    if (timeout_ms === undefined || findNodeType(type)?.effectClass(config) !== 'external') return []
    return [{ timeout_ms, path: `${nodePath(id)}/timeout`, node_id: id }]
  })

function serviceReferences({ definition, nodePath }: Lowered): ServiceReference[] {
  return definition.nodes.flatMap(({ id, type }) =>
    (findNodeType(type)?.variables ?? []).map((variable) => ({ variable, node_id: id, path: nodePath(id) })),
  )
}

function poolReferences({ definition, nodePath }: Lowered): PoolReference[] {
  const reference = (path: string, given: string | undefined, node?: Pick<PoolReference, 'node_id'>) => {
    const pool = namedPool(given)
    return pool === undefined ? [] : [{ pool, path: `${path}/pool`, ...node }]
  }
  return [
    ...reference('/settings', definition.settings.pool),
    ...definition.nodes
      .filter(({ type, config }) => findNodeType(type)?.effectClass(config) === 'external')
      .flatMap(({ id, pool }) => reference(nodePath(id), pool, { node_id: id })),
  ]
}
