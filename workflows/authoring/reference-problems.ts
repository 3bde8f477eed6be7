import { CLEANUP_ROLES, type Definition, type NodeSpec } from '../language/definition.ts'
import type { Reference } from '../language/expressions/references.ts'
import { envNamed, NAME_IT, SECRETS_ROOT } from '../language/expressions/secrets.ts'
import { type Problem, write, writeInstead } from '../language/problems.ts'
import { memberHint, NODE_MEMBERS, nameHint, pathText, rootHint } from '../language/reference-hints.ts'
import { EACH_TYPES, findNodeType, REPEAT_TYPES } from '../nodes/index.ts'
import type { Graph } from './graph.ts'
import { type Bodies, isLoop, isRepeat } from './loops.ts'
import type { Lowered } from './lower.ts'
import type { Site } from './types.ts'

const ROOTS = ['trigger', 'inputs', 'nodes', 'run', 'org', 'env', SECRETS_ROOT]
/** The roots that exist only in the body of a loop, by the loops that have them. */
const BODY_ROOTS: Record<string, { has: (loop: NodeSpec) => boolean; types: string; hint: string }> = {
  item: {
    has: (loop) => !isRepeat(loop),
    types: EACH_TYPES,
    hint: 'in the body, the nodes that `item` leads to, it is the current one; after `done`, read the results: nodes.<loop>.output.items',
  },
  index: {
    has: () => true,
    types: `${EACH_TYPES} or ${REPEAT_TYPES}`,
    hint: 'in the body it is the number of the item or the turn, from 0',
  },
  previous: {
    has: isRepeat,
    types: REPEAT_TYPES,
    hint: 'in the body, the nodes that `turn` leads to, it is the result of the turn before; after `done`, read nodes.<loop>.output.last; the record before a change is trigger.previous',
  },
}

/** The nodes that a hint names. */
const MAX_NAMED = 5

/** What the references of a definition can name. */
export interface Names {
  graph: Graph
  bodies: Bodies
  inputs: Definition['inputs']
  nodes: ReadonlyMap<string, NodeSpec>
  /** The nodes by which a run can complete, or an iteration of a loop can end. */
  ends(loop?: string): readonly string[]
}

/** Where a placeholder stands. */
export interface Place extends Site {
  /** It is in the config of a node that calls other services. */
  external?: boolean
  /** It would be rendered for each item, if the node had `items`. */
  withoutItems?: boolean
  /** It names a field of the items. */
  isField?: boolean
  /** It is the `when` of a node. */
  isCondition?: boolean
  /** The values of the node are only compared, so that null is one of their values. */
  isCompared?: boolean
  /** The inputs and nodes that the `when` of the node reads, such as `inputs.email`. */
  tested?: ReadonlySet<string>
}

type ReferenceProblem = Pick<Problem, 'code' | 'message' | 'hint'>

export function namesOf({ definition }: Lowered, graph: Graph, bodies: Bodies): Names {
  const ends = new Map<string | undefined, string[]>()
  return {
    graph,
    bodies,
    inputs: definition.inputs,
    nodes: new Map(definition.nodes.map((node) => [node.id, node])),
    ends(loop) {
      const found =
        ends.get(loop) ?? definition.nodes.filter((node) => mayEnd(node, bodies, loop)).map(({ id }) => id)
      ends.set(loop, found)
      return found
    },
  }
}

/** Whether a run whose outputs are rendered, or an iteration of a loop, can end by a node. */
function mayEnd({ id, type, config, role }: NodeSpec, bodies: Bodies, loop: string | undefined): boolean {
  if (role !== undefined) return false
  // A node without handles ends the run, also in a body.
  if (findNodeType(type)?.handles(config).length === 0)
    return loop === undefined && config.status !== 'failed' && config.outputs === undefined
  return bodies.around(id)[0] === loop
}

/** What is wrong with one reference: the first problem of its segments, from left to right, then of its order. */
export function referenceProblem(
  names: Names,
  reference: Reference,
  place: Place,
): ReferenceProblem | undefined {
  const [root, name] = reference.path.map(String)
  if (root === undefined || root === place.late || (place.own && Object.hasOwn(place.own, root)))
    return undefined
  if (Object.hasOwn(BODY_ROOTS, root)) return bodyRootProblem(names, reference, root, place)
  if (!ROOTS.includes(root)) return rootProblem(names, reference, place)
  if (root === SECRETS_ROOT) return secretProblem(reference, place)
  if (name === undefined) return undefined
  if (root === 'inputs') return inputProblem(names, reference, name)
  if (root === 'nodes') return nodeProblem(names, reference, name, place)
  return undefined
}

/** The loops around a placeholder; a text that a loop renders for each item is in its body. */
function loopsAround({ bodies }: Names, { reader, perItem }: Place): readonly string[] {
  if (!reader) return []
  const outer = bodies.around(reader.id)
  return perItem && isLoop(reader) ? [reader.id, ...outer] : outer
}

function bodyRootProblem(
  names: Names,
  { path, whole }: Reference,
  root: string,
  place: Place,
): ReferenceProblem | undefined {
  if (bodyRootsAt(names, place).includes(root)) return undefined
  if (place.isField && root === 'item' && whole && path.length > 1)
    return {
      code: 'root_not_available',
      message: 'this setting names a field of the items: it is no placeholder',
      hint: write(path.slice(1).join('.')),
    }
  const { types, hint } = BODY_ROOTS[root]!
  return {
    code: 'root_not_available',
    message: `${root} is not available: it exists only in the body of a ${types}`,
    hint:
      place.withoutItems && root !== 'previous'
        ? `add \`items\`, the list for whose items ${place.reader?.id} renders this: \`items: "{{ nodes.<id>.output.data }}"\``
        : hint,
  }
}

/** The roots of the bodies that a placeholder is in. A node that renders a text for each item has those of an item. */
function bodyRootsAt(names: Names, place: Place): string[] {
  const loops = loopsAround(names, place).flatMap((id) => names.nodes.get(id) ?? [])
  const ofItems = place.perItem && place.reader && !isLoop(place.reader)
  return Object.keys(BODY_ROOTS).filter(
    (root) => loops.some(BODY_ROOTS[root]!.has) || (ofItems && root !== 'previous'),
  )
}

function rootProblem(names: Names, reference: Reference, place: Place): ReferenceProblem {
  const { nodes, inputs } = names
  const roots = [...ROOTS, ...bodyRootsAt(names, place)]
  return {
    code: 'unknown_root',
    message: `unknown root ${reference.path[0]}: a placeholder starts with one of ${roots.join(', ')}`,
    hint: () => rootHint(reference, { roots, nodes: [...nodes.keys()], inputs: Object.keys(inputs) }),
  }
}

function secretProblem(reference: Reference, { external }: Place): ReferenceProblem | undefined {
  const code = 'root_not_available'
  if (!external)
    return {
      code,
      message: `${SECRETS_ROOT} are not available here: only the config of a node that calls other services can read them`,
      hint: 'read the secret in the node that sends it; keep values that are not secret in env',
    }
  return envNamed(reference) === undefined ? { code, message: NAME_IT } : undefined
}

function inputProblem({ inputs }: Names, reference: Reference, name: string): ReferenceProblem | undefined {
  if (Object.hasOwn(inputs, name)) return undefined
  return {
    code: 'unknown_input',
    message: `the workflow has no input ${name}`,
    hint: () => nameHint(reference, 1, Object.keys(inputs)),
  }
}

function nodeProblem(
  names: Names,
  reference: Reference,
  name: string,
  place: Place,
): ReferenceProblem | undefined {
  const node = names.nodes.get(name)
  if (!node)
    return {
      code: 'unknown_node',
      message: `there is no node ${name}`,
      hint: () => nameHint(reference, 1, [...names.nodes.keys()]),
    }
  return (
    memberProblem(reference) ??
    bodyProblem(names, reference, node, place) ??
    maskProblem(reference, node) ??
    orderProblem(names, reference, node, place)
  )
}

function memberProblem(reference: Reference): ReferenceProblem | undefined {
  const [, , member] = reference.path.map(String)
  if (member === undefined || NODE_MEMBERS.includes(member)) return undefined
  return {
    code: 'unknown_field',
    message: `a node has no ${member}: it has ${NODE_MEMBERS.join(', ')}`,
    hint: memberHint(reference),
  }
}

/** A value that the config of its node masks: a reader would get the mask. */
function maskProblem(reference: Reference, { id, type, config }: NodeSpec): ReferenceProblem | undefined {
  const [, , member, ...path] = reference.path.map(String)
  if (member !== 'output' || !findNodeType(type)?.isMasked(config, path)) return undefined
  return {
    code: 'invalid_value',
    message: `${path.join('.')} of ${id} is in its secret_headers or secret_fields: this reads [masked]`,
    hint: `read another value, or take it out of these settings of ${id}`,
  }
}

function bodyProblem(
  names: Names,
  reference: Reference,
  node: NodeSpec,
  place: Place,
): ReferenceProblem | undefined {
  const loops = loopsAround(names, place)
  const outside = names.bodies.around(node.id).find((loop) => !loops.includes(loop))
  if (outside === undefined) return undefined
  const loop = names.nodes.get(outside)
  const repeats = loop !== undefined && isRepeat(loop)
  return {
    code: 'not_upstream',
    message: `${node.id} is in the body of ${outside}: it has a result for each ${repeats ? 'turn' : 'item'}, which only the body can read`,
    hint: () =>
      (repeats && lastHint(names, reference, node, loop)) ||
      `nodes.${outside}.output.${repeats ? 'last' : 'items'}`,
  }
}

/** The output of the last node of a body is the result of the last turn. */
function lastHint({ graph, ends }: Names, { path }: Reference, node: NodeSpec, loop: NodeSpec): string {
  const isLast = !ends(loop.id).some((id) => id !== node.id && graph.mayPrecede(node.id, id))
  if (!isLast || loop.config.output !== undefined || path[2] !== 'output') return ''
  return writeInstead(pathText(['nodes', loop.id, 'output', 'last', ...path.slice(3)]), pathText(path))
}

function orderProblem(
  names: Names,
  reference: Reference,
  node: NodeSpec,
  place: Place,
): ReferenceProblem | undefined {
  const { graph, bodies } = names
  const { reader, perItem } = place
  // An output of the workflow is rendered after all nodes.
  if (!reader) return endProblem(names, reference, node)
  // A text that a loop renders for each item reads the loop and its body.
  if (perItem && isLoop(reader)) {
    if (node === reader) return undefined
    if (bodies.around(node.id).includes(reader.id)) return endProblem(names, reference, node, reader.id)
  }
  // Nodes in a cycle and unreachable nodes have no order; both are reported already.
  if (graph.cycle || !graph.reachable.has(reader.id)) return undefined
  if (node.id === reader.id)
    return {
      code: 'not_upstream',
      message: `${node.id} reads its own result, which exists only after it has ended`,
      hint: () => upstreamHint(names, reader.id),
    }
  if (reader.role && node.id === reader.undoes) return undefined
  if (!mayPrecede(graph, node, reader))
    return {
      code: 'not_upstream',
      message: `${node.id} is not upstream of ${reader.id}: its result is never available there`,
      hint: () => upstreamHint(names, reader.id),
    }
  // A run can end at any node, and a failed cleanup node does not keep the next from running.
  const isAtEnd = node.role !== undefined || reader.role === 'on_cancel' || reader.role === 'finally'
  if (reference.optional || reference.tested || (!isAtEnd && graph.surelyPrecedes(node.id, reader.id)))
    return undefined
  if (!isAtEnd && areExhaustive(graph, reference, [reader.id])) return undefined
  // A node that was skipped has the status `skipped` and no output, which a condition can test.
  const isTested =
    place.isCondition || reference.path[2] === 'status' || place.tested?.has(`nodes.${node.id}`)
  if (isTested && reader.join !== 'any') return undefined
  return {
    code: 'maybe_not_upstream',
    message: `${node.id} is not upstream of ${reader.id} on every path`,
    hint: 'add a default: {{ … | default: "" }}',
  }
}

/** Whether one of the nodes that a chain of defaults reads has completed wherever the run comes to one of these. */
function areExhaustive(graph: Graph, { path, alternatives = [] }: Reference, at: readonly string[]): boolean {
  const ids = [...alternatives, path].flatMap(([root, id, member]) =>
    root === 'nodes' && member === 'output' ? [String(id)] : [],
  )
  return ids.length > 1 && at.every((node) => graph.oneSurelyCompletes(ids, node))
}

/** A value that is read at the end of a run, or of an item or turn of a loop: alone, null says that there is none. */
function endProblem(
  { graph, ends }: Names,
  reference: Reference,
  { id }: NodeSpec,
  loop?: string,
): ReferenceProblem | undefined {
  const { whole, optional, tested, path } = reference
  if (whole || optional || tested || path[2] === 'status') return undefined
  if (graph.cycle || !graph.reachable.has(id) || graph.surelyEnds(id, ends(loop))) return undefined
  if (areExhaustive(graph, reference, ends(loop))) return undefined
  return {
    code: 'maybe_not_upstream',
    message: `${id} does not run on every path: here its ${path[2] ?? 'output'} is null where it did not`,
    hint: 'add a default: {{ … | default: "" }}',
  }
}

/** A node that runs at the end of every run, or of a cancelled one, can read all that have run. */
function mayPrecede(graph: Graph, node: NodeSpec, reader: NodeSpec): boolean {
  if (graph.mayPrecede(node.id, reader.id)) return true
  if (reader.role === undefined || reader.role === 'undo') return false
  return CLEANUP_ROLES.indexOf(node.role ?? 'undo') < CLEANUP_ROLES.indexOf(reader.role)
}

function upstreamHint({ nodes, graph }: Names, reader: string): string {
  const before = [...nodes.keys()].filter((id) => id !== reader && graph.mayPrecede(id, reader))
  return before.length > 0
    ? `read a node before it: ${before
        .slice(-MAX_NAMED)
        .map((id) => `nodes.${id}.output`)
        .join(', ')}`
    : 'no node is before it: read inputs or trigger'
}
