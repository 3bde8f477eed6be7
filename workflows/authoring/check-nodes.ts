import { alwaysHolds } from '../language/check-events.ts'
import { type ConfigIssue, checkConfig, describeIssue } from '../language/config.ts'
import type { Definition, NodeSpec } from '../language/definition.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { meantBy, nearestName, type Problem, pointer, REMOVE, write } from '../language/problems.ts'
import { repairHint } from '../language/repair.ts'
import { keysAt, shapeOf } from '../language/shapes.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import type { ConfigProblem, NodeType } from '../nodes/define.ts'
import { EACH_TYPES, findNodeType, meantType, nodeTypes, REPEAT_TYPES } from '../nodes/index.ts'
import { isObject } from '../shared/is-object.ts'
import { checkCredentials } from './check-credentials.ts'
import { checkDestination } from './check-destinations.ts'
import type { Graph } from './graph.ts'
import type { Bodies } from './loops.ts'
import { type Lowered, nodesWithErrorEdge } from './lower.ts'
import { MISSING_TYPE } from './salvage.ts'

/**
 * Reports unknown node types. If the meant type is known, the node gets it, so that its config and handles are checked
 * in the same validation.
 */
export function correctTypes<T extends { type: string }>(
  nodes: readonly (readonly [id: string, node: T])[],
  nodePath: (index: number) => string,
): { problems: Problem[]; corrected: (readonly [id: string, node: T])[] } {
  const problems: Problem[] = []
  const corrected = nodes.map(([id, node], index) => {
    if (node.type === MISSING_TYPE || findNodeType(node.type)) return [id, node] as const
    const meant = meantType(node.type)
    problems.push({
      code: 'unknown_node_type',
      message: `there is no node type ${node.type.slice(0, 100)}`,
      path: `${nodePath(index)}/type`,
      node_id: id,
      hint: meant ? `did you mean ${meant.type}?` : `one of ${Object.keys(nodeTypes).join(', ')}`,
    })
    return [id, meant ? { ...node, type: meant.type } : node] as const
  })
  return { problems, corrected }
}

/** Checks the config of each node. */
export function checkNodes({ definition, nodePath }: Lowered, catalogue: Catalogue): Problem[] {
  return definition.nodes.flatMap((node): Problem[] => {
    const path = nodePath(node.id)
    const type = findNodeType(node.type)
    if (!type) return []
    const inConfig = (problem: ConfigProblem): Problem => ({
      ...problem,
      path: `${path}/config${pointer(...problem.path)}`,
      node_id: node.id,
    })
    const shape = withoutMisspelt(type, node.config, checkConfig(type.config, node.config)).flatMap((issue) =>
      describeIssue(issue, node.type, [node.id]).map((one, index) =>
        inConfig({ ...one, code: 'invalid_config', hint: () => configHint(type, node.config, issue, index) }),
      ),
    )
    return [
      ...checkDeprecated(type, node, path),
      ...shape,
      ...checkAttempts(node, path),
      ...checkCredentials(node, path),
      ...checkDestination(node, path),
      ...type.check(node.config, catalogue).map(inConfig),
    ]
  })
}

function checkDeprecated({ type, deprecated }: NodeType, { id }: NodeSpec, path: string): Problem[] {
  if (deprecated === undefined) return []
  return [
    {
      code: 'deprecated_node',
      message: `the node type ${type} is deprecated: it still runs, but will be removed`,
      path: `${path}/type`,
      node_id: id,
      hint: deprecated,
    },
  ]
}

/** The issues without those of missing keys that are there under a misspelt name. */
function withoutMisspelt(type: NodeType, config: unknown, issues: ConfigIssue[]): ConfigIssue[] {
  const meant = new Set(
    issues.flatMap(({ keys = [], path }) =>
      keys.map((key) => pointer(...path, meantBy(key, keysAt(shapeOf(type.config), config, path)) ?? '')),
    ),
  )
  return issues.filter(
    ({ keys, path, message }) => keys || message !== 'is missing' || !meant.has(pointer(...path)),
  )
}

function configHint(type: NodeType, config: unknown, issue: ConfigIssue, index: number): string | undefined {
  const one = issue.keys ? { ...issue, keys: [issue.keys[index]!] } : issue
  return repairHint(type.config, config, one, type.example.config)
}

/**
 * Only external nodes have retries, a timeout, a rate and a pool: the others run in the run's transaction. A rate counts
 * attempts, so it cannot limit the pages of one.
 */
function checkAttempts(node: NodeSpec, path: string): Problem[] {
  if (findNodeType(node.type)?.effectClass(node.config) === 'external') {
    if (node.rate === undefined || node.config.paginate === undefined) return []
    return [
      {
        code: 'not_applicable',
        message: 'rate counts attempts, and with paginate one attempt makes several calls',
        path: `${path}/rate`,
        node_id: node.id,
        atKey: true,
        hint: 'read one page in each turn of a repeat, whose call has this rate',
      },
    ]
  }
  return (['retry', 'timeout', 'rate', 'pool'] as const)
    .filter((member) => node[member] !== undefined)
    .map((member) => ({
      code: 'not_applicable',
      message: `${member} has no effect: this ${node.type} node is not external, it runs once, in the run's transaction`,
      path: `${path}/${member}`,
      node_id: node.id,
      atKey: true,
      hint: REMOVE,
    }))
}

/** Checks edges, reachability and cycles. */
export function checkGraph({ definition, ends, nodePath, edgePath }: Lowered, graph: Graph): Problem[] {
  const nodes = new Map(definition.nodes.map((node) => [node.id, node]))
  const ids = [...nodes.keys()]
  const edgesToEnd = new Set(ends)
  const handlesOf = remembered(definition.nodes)
  const problems: Problem[] = []
  for (const edge of [...definition.edges, ...ends]) {
    const where = { path: edgePath(edge), node_id: edge.from }
    const source = nodes.get(edge.from)
    for (const id of [edge.from, edge.to])
      if (!nodes.has(id) && !edgesToEnd.has(edge))
        problems.push({
          code: 'missing_target',
          message: `there is no node ${id.slice(0, 100)}`,
          ...where,
          ...nearestName(id, ids),
        })
    const handles = source && handlesOf(source)
    if (!handles || handles.known.has(edge.handle)) continue
    const { names } = handles
    problems.push({
      code: 'unknown_handle',
      message:
        names.length > 0
          ? `${edge.from} has no handle ${JSON.stringify(edge.handle.slice(0, 100))}; a ${source.type} has ${listed(names)}`
          : `a ${source.type} ends the run: nothing can follow ${edge.from}`,
      ...where,
      atKey: true,
      ...nearestName(edge.handle, names),
    })
  }
  if (graph.cycle)
    problems.push({
      code: 'cycle',
      message: `these nodes form a cycle: ${[...graph.cycle, graph.cycle[0]].join(' → ')}`,
      path: nodePath(graph.cycle[0]!),
      node_id: graph.cycle[0]!,
      ...cycleHint(graph.cycle, nodes),
    })
  for (const { id } of definition.nodes)
    if (!graph.reachable.has(id))
      problems.push({
        code: 'unreachable_node',
        message: `no path leads to ${id}`,
        path: nodePath(id),
        node_id: id,
        hint: `runs start at ${definition.nodes[0]?.id}`,
      })
  return problems
}

/** A cycle through a loop usually leads from its body back to it, which is not needed. */
function cycleHint(cycle: string[], nodes: ReadonlyMap<string, NodeSpec>): { hint?: string } {
  const loop = cycle.find((id) => findNodeType(nodes.get(id)?.type ?? '')?.body !== undefined)
  if (loop === undefined)
    return {
      hint: `to repeat nodes for each item of a list, use ${EACH_TYPES}; until a condition holds, use ${REPEAT_TYPES}`,
    }
  return {
    hint: `the body of ${loop} ends where no node follows: write \`next: end\` in its last node, and ${loop} takes the next item or turn`,
  }
}

const MAX_LISTED = 50

const listed = (names: string[]) =>
  names.length > MAX_LISTED ? `${names.slice(0, MAX_LISTED).join(', ')}, …` : names.join(', ')

/** The names of the handles of each node, computed once; undefined for an unknown type. */
function remembered(
  nodes: NodeSpec[],
): (node: NodeSpec) => { names: string[]; known: ReadonlySet<string> } | undefined {
  const found = new Map(
    nodes.map((node) => {
      const type = findNodeType(node.type)
      const names = type?.handles(node.config).map(({ name }) => name)
      return [node, names && { names, known: new Set(names) }]
    }),
  )
  return (node) => found.get(node)
}

/** Warns about what is valid but likely a mistake. */
export function checkLikelyMistakes(
  { definition, nodePath }: Lowered,
  read: ReadonlySet<string>,
  bodies: Bodies,
): Problem[] {
  const caught = nodesWithErrorEdge(definition.edges)
  return definition.nodes.flatMap((node): Problem[] => {
    const where = { path: nodePath(node.id), node_id: node.id }
    const type = findNodeType(node.type)
    const attempts = node.retry?.max_attempts ?? type?.retry.max_attempts ?? 1
    const handled = attempts > 1 || node.on_error || caught.has(node.id)
    const problems: Problem[] = []
    if (node.when !== undefined && !hasPlaceholder(node.when) && !['true', 'false'].includes(node.when))
      problems.push({ ...alwaysHolds(node.when), path: `${where.path}/when`, node_id: node.id })
    if (type?.reachesOutside(node.config) && !handled)
      problems.push({
        code: 'side_effect_without_retry',
        message: `${node.id} can fail, but has one attempt only, no \`on_error\` and no edge from its \`error\` handle`,
        hint: write('3'),
        path: `${where.path}/retry/max_attempts`,
        node_id: node.id,
      })
    // A node that leads to several others, or whose failure leads on, is there for its handles.
    const forks = isEmptyStart(node) || caught.has(node.id)
    if (type?.outputOnly(node.config) && !read.has(node.id) && !forks)
      problems.push({
        code: 'unused_output',
        message: `nothing reads the output of ${node.id}`,
        ...where,
        hint: () => unusedHint(node, definition, bodies),
      })
    return problems
  })
}

/** Only its body reads the result of a node in a loop, and a body needs a node. */
function unusedHint({ id }: NodeSpec, { nodes }: Definition, bodies: Bodies): string {
  const [loop] = bodies.around(id)
  if (loop === undefined)
    return `read it in a later node, or return it: \`outputs: {${id}: "{{ nodes.${id}.output }}"}\`; or remove ${id}`
  const isAlone = nodes.filter((node) => bodies.around(node.id)[0] === loop).length === 1
  return `read it in a later node of the body, or in \`output\` of ${loop}${isAlone ? '' : `; or remove ${id}`}`
}

/** A node without a value, which only starts several others at once. */
const isEmptyStart = ({ config: { fields } }: NodeSpec) =>
  isObject(fields) && Object.keys(fields).length === 0

/** A workflow is never its own error workflow. */
export function checkErrorWorkflow({ name, settings }: Pick<Definition, 'name' | 'settings'>): Problem[] {
  if (settings.error_workflow !== name) return []
  return [
    {
      code: 'not_applicable',
      message: 'error_workflow has no effect: a workflow is never its own error workflow',
      path: '/settings/error_workflow',
      hint: REMOVE,
    },
  ]
}
