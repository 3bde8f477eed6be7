import { isDeepStrictEqual } from 'node:util'
import type { Program, ProgramNode } from '../language/definition.ts'
import { references } from '../language/expressions/references.ts'
import { textsIn } from '../language/texts.ts'
import { findNodeType } from '../nodes/index.ts'
import { loopsAround } from './retry.ts'
import type { RunNode } from './run-state.ts'
import { isOpen, type NodeState, step } from './step.ts'

/**
 * The migration of an open run to another version of its workflow. Its rows stay: what is open goes on, what is done is
 * not repeated, and what is still to come follows the new version. So the new version must have all that the rows name.
 *
 * A node that the new version adds is skipped if the run has passed it: all nodes before it are done, the flow has gone
 * on from them to nodes that have begun, and no node that was still to come follows it. Every other node that is ready
 * starts.
 */

export const OBSTACLE_CODES = [
  'run_ending',
  'node_missing',
  'node_type_changed',
  'node_moved',
  'effect_changed',
  'pool_changed',
  'handle_missing',
  'loop_items_changed',
  'loop_body_changed',
  'reads_skipped_node',
  'input_refused',
  'engine_too_new',
] as const

/** What stands against a migration. */
export interface Obstacle {
  code: (typeof OBSTACLE_CODES)[number]
  /** Null: it concerns the run. */
  node_id: string | null
  message: string
  hint: string
}

/** A node that the run has reached, in any item of the loops around it. */
export interface ReachedNode extends Pick<RunNode, 'node_id' | 'node_type'> {
  /** The loops around it, the outermost first. */
  loops: string[]
  /** Whether the run waits for it, in some item. */
  open: boolean
  /** Whether it was skipped, in every item. */
  skipped: boolean
}

export interface MigratedRun {
  reached: ReachedNode[]
  /** The nodes outside of any loop. */
  top: (NodeState & Pick<RunNode, 'node_id' | 'settled_segment'>)[]
  /** The loops in progress, each after the loops around it. */
  loops: string[][]
}

export interface PlannedMigration {
  /** Without one, the run can be migrated. */
  obstacles: Obstacle[]
  /** The added nodes that the run has passed and that could start now: they get a row as skipped. */
  passed: string[]
}

/** Decides whether and how a run of the version `from` can go on with the version `to`. */
export function planMigration(from: Program, to: Program, run: MigratedRun): PlannedMigration {
  const { passed, skipped } = passedNodes(from, to, run)
  const obstacles = [
    ...run.reached.flatMap((node) => reachedObstacles(from, to, node)),
    ...handleObstacles(from, to, run),
    ...run.loops.flatMap((chain) => loopObstacles(from, to, chain.at(-1)!)),
    ...readObstacles(to, run, skipped),
  ]
  // A loop in a loop is in the body of both.
  const unique = new Map(obstacles.map((one) => [`${one.code} ${one.node_id} ${one.message}`, one]))
  return { obstacles: [...unique.values()], passed }
}

function reachedObstacles(from: Program, to: Program, { node_id: id, ...row }: ReachedNode): Obstacle[] {
  const node = to.nodes[id]
  const has = row.open ? 'the run waits for it' : 'the run has done it'
  const hint = `keep the node ${id} as it is in the version of the run, or end the run and start a new one`
  if (!node) {
    if (row.skipped) return []
    return [
      { code: 'node_missing', node_id: id, message: `${has}, and the new version does not have it`, hint },
    ]
  }
  if (node.type !== row.node_type) {
    const message = `${has} as ${row.node_type}, and in the new version it is ${node.type}`
    return [
      { code: 'node_type_changed', node_id: id, message, hint: `${hint}; give the new node another id` },
    ]
  }
  const loops = loopsAround(to, id)
  if (loops.join('/') !== row.loops.join('/')) {
    const message = `${has} ${placeOf(row.loops)}, and in the new version it is ${placeOf(loops)}`
    return [{ code: 'node_moved', node_id: id, message, hint }]
  }
  if (!row.open) return []
  const keep = (what: string) => `wait until ${id} has ended, or keep its ${what}`
  // The call is in the queue of its pool already.
  const [pool, other] = [from.nodes[id]?.pool ?? 'default', node.pool ?? 'default']
  if (pool !== other) {
    const message = `${has} in the worker pool ${pool}, and in the new version its pool is ${other}`
    return [{ code: 'pool_changed', node_id: id, message, hint: keep('pool') }]
  }
  const effect = from.nodes[id]?.effect ?? node.effect
  if (effect === node.effect) return []
  const message = `${has}, and its effect is ${effect} in the version of the run and ${node.effect} in the new one`
  return [{ code: 'effect_changed', node_id: id, message, hint: keep('config') }]
}

const placeOf = (loops: string[]) =>
  loops.length === 0 ? 'outside of any loop' : `in the loop ${loops.join('/')}`

/** A done node whose next nodes have not begun left by a handle: without it, nothing would follow. */
function handleObstacles(from: Program, to: Program, { top }: MigratedRun): Obstacle[] {
  const begun = new Set(top.map(({ node_id }) => node_id))
  return top.flatMap(({ node_id: id, handle, settled_segment }) => {
    const node = to.nodes[id]
    if (settled_segment === null || handle === null || !node) return []
    const waits = nextBy(from, id, handle).some((next) => !begun.has(next))
    const handles = findNodeType(node.type)?.handles(node.config) ?? []
    if (!waits || handle === 'error' || handles.some(({ name }) => name === handle)) return []
    const message = `it left by ${handle}, which it does not have in the new version, and the nodes after it have not begun`
    return [{ code: 'handle_missing', node_id: id, message, hint: `keep ${handle} in the config of ${id}` }]
  })
}

/** The list and the shape of a loop in progress stay; the configs of the nodes in its body may change. */
function loopObstacles(from: Program, to: Program, loop: string): Obstacle[] {
  const [before, after] = [from.nodes[loop], to.nodes[loop]]
  if (!before || before.type !== after?.type) return []
  const hint = `wait until the loop ${loop} has ended, or keep its items and the nodes and edges of its body`
  const obstacles: Obstacle[] = []
  if (!isDeepStrictEqual(before.config.items, after.config.items)) {
    const message = 'it is in progress with the list of the version of the run, and `items` is changed'
    obstacles.push({ code: 'loop_items_changed', node_id: loop, message, hint })
  }
  const ids = new Set([...Object.keys(from.nodes), ...Object.keys(to.nodes)])
  for (const id of ids) {
    const [old, now] = [bodyNode(from, loop, id), bodyNode(to, loop, id)]
    if (shapeOf(old) === shapeOf(now)) continue
    const what = !old ? 'is added to' : !now ? 'is removed from' : 'has another type, join or other edges in'
    const message = `it ${what} the body of ${loop}, which is in progress`
    obstacles.push({ code: 'loop_body_changed', node_id: id, message, hint })
  }
  return obstacles
}

const bodyNode = (program: Program, loop: string, id: string) =>
  loopsAround(program, id).includes(loop) ? program.nodes[id] : undefined

function shapeOf(node: ProgramNode | undefined): string | undefined {
  if (!node) return undefined
  const edges = Object.entries(node.next).flatMap(([handle, ids]) => ids.map((id) => `${handle}:${id}`))
  return JSON.stringify([node.type, node.loop, node.join, edges.sort()])
}

/** A node that may still run and reads the output of a node that will be skipped would fail. */
function readObstacles(to: Program, { top }: MigratedRun, skipped: ReadonlySet<string>): Obstacle[] {
  if (skipped.size === 0) return []
  const rows = new Map(top.map((row) => [row.node_id, row]))
  return Object.values(to.nodes).flatMap((node) => {
    const row = rows.get(loopsAround(to, node.id)[0] ?? node.id)
    // Each attempt of a call renders its config; another open node has rendered it.
    const mayRun = !row || (isOpen(row) && (row.status === 'running' || node.loop !== undefined))
    if (skipped.has(node.id) || skipped.has(node.undoes ?? '') || !mayRun) return []
    return [...readBy(node)]
      .filter((id) => skipped.has(id))
      .map((id) => ({
        code: 'reads_skipped_node' as const,
        node_id: node.id,
        message: `it reads the output of ${id}, a new node, which this run skips: it comes before nodes that have begun`,
        hint: `give the placeholder a \`default\`, or place ${id} after the nodes that the run has begun`,
      }))
  })
}

/** The nodes whose outputs a node reads without a default. */
function readBy({ type, config, when }: ProgramNode): Set<string> {
  const verbatim = findNodeType(type)?.verbatim ?? []
  const rendered = Object.entries(config).filter(([name]) => !verbatim.includes(name))
  const found = textsIn([Object.fromEntries(rendered), when]).flatMap(({ text }) => references(text))
  const read = found.filter(({ path: [root, , member], optional }) => {
    return root === 'nodes' && member === 'output' && !optional
  })
  return new Set(read.map(({ path }) => String(path[1])))
}

/** The added nodes outside of loops that the run has passed; `skipped` has also those that only they lead to. */
function passedNodes(
  from: Program,
  to: Program,
  { top }: MigratedRun,
): { passed: string[]; skipped: ReadonlySet<string> } {
  const states = new Map<string, NodeState>(
    top.map(({ node_id, status, handle, settled_segment }) => [
      node_id,
      settled_segment === null ? { status: 'running', handle: null } : { status, handle },
    ]),
  )
  const skip = (id: string) => states.set(id, { status: 'skipped', handle: null })
  const passed: string[] = []
  const skipped = new Set<string>()
  // Every node of a run that has not begun is still to come.
  for (let more = top.length > 0; more; ) {
    const ready = step(to, states).ready.filter((id) => isPassed(from, to, states, id))
    for (const id of ready) skip(id)
    passed.push(...ready)
    const dead = ready.length > 0 ? step(to, states).skipped : []
    for (const id of [...ready, ...dead]) if (!Object.hasOwn(from.nodes, id)) skipped.add(id)
    more = ready.length > 0
  }
  return { passed, skipped }
}

function isPassed(from: Program, to: Program, states: ReadonlyMap<string, NodeState>, id: string): boolean {
  const isAdded = (node: string) => !Object.hasOwn(from.nodes, node)
  if (![...unreachedFrom(to, states, id)].every(isAdded)) return false
  return !to.nodes[id]!.incoming.some((edge) => {
    const colon = edge.indexOf(':')
    const [source, handle] = [edge.slice(0, colon), edge.slice(colon + 1)]
    return states.get(source)?.handle === handle && goesOn(from, to, states, source, handle)
  })
}

/** Whether the flow had not gone on from a done node to a node that the new version has removed from there. */
function goesOn(
  from: Program,
  to: Program,
  states: ReadonlyMap<string, NodeState>,
  source: string,
  handle: string,
): boolean {
  const now = nextBy(to, source, handle)
  return nextBy(from, source, handle).some((next) => !states.has(next) && !now.includes(next))
}

/** The node, and the nodes that can be reached from it through nodes that have not begun. */
function unreachedFrom(to: Program, states: ReadonlyMap<string, NodeState>, id: string): Set<string> {
  const found = new Set([id])
  for (const at of found)
    for (const next of Object.values(to.nodes[at]!.next).flat()) if (!states.has(next)) found.add(next)
  return found
}

const nextBy = (program: Program, id: string, handle: string): string[] => {
  const { next } = program.nodes[id] ?? { next: {} as ProgramNode['next'] }
  return Object.hasOwn(next, handle) ? next[handle]! : []
}
