import { setImmediate } from 'node:timers/promises'
import type { Program, ProgramNode } from '../language/definition.ts'
import { explained, type RenderLimits, render, type Scope } from '../language/expressions/liquid.ts'
import { references } from '../language/expressions/references.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { NodeError } from '../language/node-error.ts'
import { textsIn } from '../language/texts.ts'
import type { NodeResult, NodeType } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import { createTurns, type Turn } from '../shared/turns.ts'
import { type ContextOptions, contextOf } from './context.ts'
import { dryRun, RENDER_LIMITS } from './dry-run.ts'
import { firstHandle } from './execute.ts'
import { renderConfig, splitLate } from './late.ts'
import { masked } from './mask.ts'
import { evaluateWhen } from './when.ts'

/**
 * What a run would do, before it is started: an API request waits for it. Work is bounded in steps; the time is only
 * reached by a large workflow, or on a machine that is far too busy.
 */
const BUDGET = { nodes: 200, milliseconds: 5_000 }
/** The work of the texts of one node, some 0.4 s: each has an equal part, and stays as written if it takes more. */
const NODE_WORK = 4_000_000

/** `runs`: with these inputs; `may_run`: that depends on a result that is not known yet; `skipped`: it does not run. */
export const REACHES = ['runs', 'may_run', 'skipped'] as const
type Reach = (typeof REACHES)[number]

export interface PreviewedNode {
  reach: Reach
  /** Rendered as far as the values are known, with secrets masked; in a loop, for its first item. */
  config?: unknown
  /** The paths in placeholders whose values are not known yet. */
  unknown?: string[]
  /** The planned calls; absent if they are not known yet. */
  calls?: string[]
}

type Facts = Pick<ContextOptions, 'run' | 'organization'>
/** How a node leaves: by the handles `taken`, perhaps by others of `open`. */
type Left = { reach: Reach; taken: readonly string[]; open: readonly string[] }

/**
 * Follows a program as far as its values are known. Nodes that only compute are computed; no other node is run. Nodes
 * beyond the budget are absent. `secrets`: masks of the secrets, for the nodes that can read them.
 */
export async function previewRun(
  program: Program,
  scope: Scope,
  secrets: Scope,
  facts: Facts,
): Promise<Map<string, PreviewedNode>> {
  const found = new Map<string, PreviewedNode>()
  const left = new Map<string, Left>()
  const nodes: Record<string, unknown> = {}
  const items = new Map<string, Scope>()
  const until = performance.now() + BUDGET.milliseconds
  for (const node of inOrder(program)) {
    if (found.size === BUDGET.nodes || performance.now() > until) break
    await setImmediate()
    const type = findNodeType(node.type)
    if (!type) continue
    const known = { ...scope, nodes, ...itemsAround(node, program, items) }
    const reached = node.id === program.start ? 'runs' : reachOf(node, left)
    const holds = node.when === undefined || evaluateWhen(node.when, known, RENDER_LIMITS)
    if (reached === 'skipped' || holds === false) {
      found.set(node.id, { reach: 'skipped' })
      // A node whose `when` does not hold leads on by its first handle.
      left.set(node.id, { reach: reached, taken: [firstHandle(type, node.config)], open: [] })
      nodes[node.id] = { output: null, status: 'skipped', handle: null, error: null }
      continue
    }
    const visible = type.reachesOutside(node.config) ? { ...known, secrets } : known
    const reach = holds instanceof NodeError ? 'may_run' : reached
    found.set(node.id, { reach, ...(await shown(type, node, visible, facts)) })
    const result = await computed(type, node, known, facts)
    left.set(node.id, { reach: reached, ...(result ?? handlesOf(type, node)) })
    if (result && reach === 'runs') nodes[node.id] = result.value
    if (result?.items) items.set(node.id, result.items)
  }
  const known = { ...scope, nodes }
  for (const node of Object.values(program.nodes)) {
    const type = findNodeType(node.type)
    if (!node.role || !type) continue
    if (found.size === BUDGET.nodes || performance.now() > until) break
    await setImmediate()
    const visible = type.reachesOutside(node.config) ? { ...known, secrets } : known
    found.set(node.id, { reach: reachAtEnd(node, found), ...(await shown(type, node, visible, facts)) })
  }
  return found
}

/** Whether a cleanup node runs: the outcome of the run is not known. */
function reachAtEnd({ role, undoes, when }: ProgramNode, found: ReadonlyMap<string, PreviewedNode>): Reach {
  if (undoes !== undefined && found.get(undoes)?.reach === 'skipped') return 'skipped'
  return role === 'finally' && when === undefined ? 'runs' : 'may_run'
}

/** Each node after the nodes that lead to it. */
function inOrder({ nodes, start }: Program): ProgramNode[] {
  const waiting = new Map(Object.values(nodes).map(({ id, incoming }) => [id, incoming.length]))
  const ready = [start]
  const order: ProgramNode[] = []
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    const node = nodes[id]!
    order.push(node)
    for (const target of Object.values(node.next).flat()) {
      const rest = waiting.get(target)! - 1
      waiting.set(target, rest)
      if (rest === 0) ready.push(target)
    }
  }
  return order
}

function reachOf({ incoming }: ProgramNode, left: ReadonlyMap<string, Left>): Reach {
  const edges = incoming.map((edge): Reach => {
    const at = edge.lastIndexOf(':')
    const handle = edge.slice(at + 1)
    const from = left.get(edge.slice(0, at))
    if (!from || from.reach === 'skipped') return 'skipped'
    if (from.taken.includes(handle)) return from.reach
    return from.open.includes(handle) ? 'may_run' : 'skipped'
  })
  return REACHES.find((reach) => edges.includes(reach)) ?? 'skipped'
}

/** The current item of the loop around a node, and those of the loops around that one. */
function itemsAround({ loop }: ProgramNode, program: Program, items: ReadonlyMap<string, Scope>): Scope {
  return loop === undefined ? {} : (items.get(loop) ?? itemsAround(program.nodes[loop]!, program, items))
}

async function shown(
  type: NodeType,
  { config }: ProgramNode,
  scope: Scope,
  facts: Facts,
): Promise<Omit<PreviewedNode, 'reach'>> {
  const { now, late } = splitLate(type, config)
  const unknown = new Set<string>()
  const count = textsIn(now).filter(({ text }) => hasPlaceholder(text)).length
  const work = Math.min(RENDER_LIMITS.work, Math.floor(NODE_WORK / Math.max(1, count)))
  const turn = createTurns(facts.organization.id)
  const rendering = { scope, unknown, limits: { ...RENDER_LIMITS, work }, turn }
  const rendered = { ...((await partly(now, rendering)) as object), ...late }
  const calls = unknown.size > 0 ? undefined : await dryRun(type, config, scope, facts)
  return {
    config: masked(rendered),
    ...(unknown.size > 0 ? { unknown: [...unknown] } : {}),
    ...(calls ? { calls } : {}),
  }
}

interface PartlyRendered {
  scope: Scope
  /** Gets the paths without a value. */
  unknown: Set<string>
  limits: RenderLimits
  turn: Turn
}

/**
 * Renders each text by itself; one that has no value yet stays as it was written. Yields to the event loop in between.
 */
async function partly(value: unknown, rendering: PartlyRendered): Promise<unknown> {
  const { scope, unknown, limits, turn } = rendering
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) items.push(await partly(item, rendering))
    return items
  }
  if (typeof value === 'object' && value !== null) {
    const members: [string, unknown][] = []
    for (const [name, inner] of Object.entries(value)) members.push([name, await partly(inner, rendering)])
    return Object.fromEntries(members)
  }
  if (typeof value !== 'string' || !hasPlaceholder(value)) return value
  await turn()
  try {
    return render(value, scope, limits)
  } catch (error) {
    if (!(error instanceof NodeError)) throw error
    for (const { path } of explained(value, '', () => references(value)))
      if (!isKnown(path, scope)) unknown.add(path.join('.'))
    return value
  }
}

function isKnown(path: readonly (string | number)[], scope: Scope): boolean {
  let value: unknown = scope
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return false
    value = (value as Record<string | number, unknown>)[key]
  }
  return true
}

/** A node that succeeds leaves by its only handle, if it has only one. */
function handlesOf(type: NodeType, { config }: ProgramNode): Pick<Left, 'taken' | 'open'> {
  const names = type.handles(config).map(({ name }) => name)
  const ofSuccess = names.filter((name) => name !== 'error')
  return ofSuccess.length === 1 ? { taken: ofSuccess, open: ['error'] } : { taken: [], open: names }
}

interface Computed extends Pick<Left, 'taken' | 'open'> {
  /** The node for placeholders. */
  value: unknown
  /** The first item of a loop. */
  items?: Scope
}

/** The result of a node that only computes; undefined if it has effects, or has no result yet. */
async function computed(
  type: NodeType,
  { config, effect }: ProgramNode,
  scope: Scope,
  facts: Facts,
): Promise<Computed | undefined> {
  if (effect !== 'pure' || type.effects.length > 0) return undefined
  try {
    const parsed = type.config.safeParse(renderConfig(type, config, scope, RENDER_LIMITS))
    if (!parsed.success) return undefined
    const { signal } = new AbortController()
    const node = { id: 'preview', attempt: 1 }
    const context = contextOf({ ...facts, now: new Date(), node, signal, scope, effects: {} })
    const result = await type.run(parsed.data, context)
    if ('wait_for' in result || 'wait_for_run' in result) return undefined
    const handle = ('handle' in result && result.handle) || firstHandle(type, config)
    const value = { output: result.output, status: 'completed', handle, error: null }
    const first = firstOf(result)
    if (!first) return { taken: [handle], open: [], value }
    return {
      taken: type.handles(config).flatMap(({ name }) => (name === 'error' ? [] : [name])),
      open: ['error'],
      value: { ...value, output: { ...first, ...countOf(result) }, status: 'running' },
      items: first,
    }
  } catch (error) {
    if (error instanceof NodeError) return undefined
    throw error
  }
}

/** What the body of a loop reads for its first item, or in its first turn. */
function firstOf(result: NodeResult): Scope | undefined {
  if ('turns' in result) return { previous: result.turns.initial, index: 0 }
  if (!('loop' in result) || result.loop.items.length === 0) return undefined
  return { item: result.loop.items[0], index: 0 }
}

const countOf = (result: NodeResult) => ('loop' in result ? { count: result.loop.items.length } : {})
