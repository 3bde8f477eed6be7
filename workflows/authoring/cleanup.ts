import { cleanupOf, type PlacedCleanup } from '../language/cleanup.ts'
import type { Definition, Edge, NodeSpec } from '../language/definition.ts'
import { type Problem, pointer, REMOVE } from '../language/problems.ts'
import { findNodeType, meantType } from '../nodes/index.ts'
import { SPEC } from '../shared/limits.ts'
import { type Bodies, isLoop } from './loops.ts'
import type { Lowered } from './lower.ts'

/**
 * A definition with its cleanup nodes beside the others, for the checks that concern every node. Their edges only say
 * what has run before them: an undo follows its node, the others the first node; each node of a list the one before.
 */
export function withCleanup(lowered: Lowered): Lowered {
  const { definition, nodePath } = lowered
  const found = cleanupOf(definition)
  if (found.length === 0) return lowered
  const paths = new Map(found.map((one) => [one.node.id, pathOf(one, nodePath)]))
  const ids = new Set(definition.nodes.map(({ id }) => id))
  // A duplicate is reported; the node of the graph counts.
  const added = found.map(({ node }) => node).filter(({ id }) => !ids.has(id))
  return {
    ...lowered,
    definition: {
      ...definition,
      nodes: [...definition.nodes, ...added],
      edges: [...definition.edges, ...edgesTo(added, definition)],
    },
    nodePath: (id) => (ids.has(id) ? undefined : paths.get(id)) ?? nodePath(id),
  }
}

const pathOf = ({ node, path }: PlacedCleanup, nodePath: Lowered['nodePath']) =>
  `${node.undoes === undefined ? '/settings' : nodePath(node.undoes)}${pointer(...path)}`

function edgesTo(added: NodeSpec[], { nodes }: Definition): Edge[] {
  const byId = new Map([...nodes, ...added].map((node) => [node.id, node]))
  const last = new Map<string, string>()
  return added.flatMap(({ id, role, undoes }): Edge[] => {
    const list = undoes ?? role!
    const before = byId.get(last.get(list) ?? undoes ?? nodes[0]?.id ?? '')
    last.set(list, id)
    return before ? [{ from: before.id, handle: exitOf(before), to: id }] : []
  })
}

/** The handle by which a node leaves when it has ended, which for a loop is not that of its body. */
function exitOf({ type, config }: NodeSpec): string {
  const found = findNodeType(type)
  return found?.handles(config).find(({ name }) => name !== found.body)?.name ?? ''
}

/** Checks where cleanup nodes stand, and that each runs by itself and ends soon. */
export function checkCleanup({ definition, nodePath }: Lowered, bodies: Bodies): Problem[] {
  const found = cleanupOf(definition)
  const taken = new Set(definition.nodes.map(({ id }) => id))
  const problems = found.flatMap((one): Problem[] => {
    const { node } = one
    const where = { path: pathOf(one, nodePath), node_id: node.id }
    const isTaken = taken.has(node.id)
    taken.add(node.id)
    return [
      ...(isTaken
        ? [
            {
              code: 'duplicate_node' as const,
              message: `duplicate node id ${node.id}: nodes of ${node.role} have ids beside those of all other nodes`,
              hint: 'write another `id`',
              ...where,
            },
          ]
        : []),
      ...checkType(node, where),
    ]
  })
  const nodes = definition.nodes.flatMap((node) => checkUndone(node, nodePath, bodies))
  if (taken.size <= SPEC.nodes) return [...nodes, ...problems]
  const message = `there are ${taken.size} nodes, with those of undo, on_cancel and finally: at most ${SPEC.nodes} are possible`
  return [...nodes, ...problems, { code: 'schema', message, path: '/nodes' }]
}

/** Loops have an undo of their own, but no node in them: only the items in progress are known at the end of a run. */
function checkUndone(node: NodeSpec, nodePath: Lowered['nodePath'], bodies: Bodies): Problem[] {
  if (node.undo === undefined) return []
  const where = { path: `${nodePath(node.id)}/undo`, node_id: node.id, atKey: true }
  const [loop] = bodies.around(node.id)
  if (loop !== undefined)
    return [
      {
        code: 'cleanup_node',
        message: `${node.id} is in the body of ${loop}: nodes in loops have no undo. Give ${loop} one instead, which runs if an item has completed: it reads \`nodes.${loop}.output.results\`, and \`.items\``,
        hint: REMOVE,
        ...where,
      },
    ]
  const type = findNodeType(node.type)
  if (!type || isLoop(node)) return []
  if (type.effectClass(node.config) === 'write' || type.reachesOutside(node.config)) return []
  return [
    {
      code: 'not_applicable',
      message: `undo has no effect to compensate: this ${node.type} node changes nothing`,
      hint: REMOVE,
      ...where,
    },
  ]
}

function checkType(
  { id, type, config, role }: NodeSpec,
  where: Pick<Problem, 'path' | 'node_id'>,
): Problem[] {
  const found = findNodeType(type)
  const at = { ...where, path: `${where.path}/type` }
  if (!found) {
    const meant = meantType(type)
    return [
      {
        code: 'unknown_node_type',
        message: `there is no node type ${type.slice(0, 100)}`,
        ...(meant && { hint: `did you mean ${meant.type}?` }),
        ...at,
      },
    ]
  }
  const reason = unfit(found, config)
  if (reason === undefined) return []
  const message = `${id} cannot be a node of ${role}: ${type} ${reason}`
  return [{ code: 'cleanup_node', message, hint: REMOVE, ...where, atKey: true }]
}

/** Why nodes of a type cannot clean up; undefined if they can. */
function unfit(
  type: NonNullable<ReturnType<typeof findNodeType>>,
  config: Record<string, unknown>,
): string | undefined {
  if (type.body !== undefined)
    return 'has a body, and cleanup nodes have no edges: start a workflow for the list'
  if (type.answered !== undefined || type.category === 'time')
    return 'waits, and a run that ends waits for nobody: only calls and child runs have the time until `cleanup_timeout`'
  if (type.handles(config).length === 0) return 'ends the run, and its end is decided already'
  return undefined
}
