import type { Command, Happened } from '../bundle/protocol.ts'
import type { Program, ProgramNode } from '../language/definition.ts'
import type { Scope } from '../language/expressions/liquid.ts'
import { findNodeType } from '../nodes/index.ts'
import { LIMITS, type Limits } from '../shared/run-limits.ts'
import type { End } from './cleanup.ts'
import type { Outcome } from './execute.ts'
import { framesOf, iterationPath, nodeKey } from './frames.ts'
import type { LoopChange } from './rows.ts'
import type { ChildEnd, RunError, RunFacts, RunIteration, RunNode } from './run-state.ts'
import { scopeOf } from './scope.ts'
import { runSegment, type SegmentHost, type SegmentResult } from './segment.ts'

/** The items of a loop that a test runs. */
export const TRIAL_ITEMS = 20

/** The part of a program that is a loop with its body; it ends when the loop does, without the cleanup of the run. */
export function loopProgram({ nodes, cleanup: _, ...program }: Program, loop: string): Program {
  const entry = findNodeType(nodes[loop]!.type)!.body!
  const isInside = ({ loop: around }: ProgramNode): boolean =>
    around !== undefined && (around === loop || isInside(nodes[around]!))
  const body = Object.values(nodes).filter(isInside)
  const { loop: __, when: ___, ...start } = nodes[loop]!
  const only = { ...start, incoming: [], next: { [entry]: start.next[entry] ?? [] } }
  return {
    ...program,
    start: loop,
    outputs: {},
    settings: {},
    nodes: Object.fromEntries([only, ...body].map((node) => [node.id, node])),
  }
}

/** What the trial of a program needs. Paths are those of iterations, such as `each:0`. */
export interface TrialHost {
  /** Runs a segment in one transaction; `runNode` runs light nodes in it. */
  segment(work: (runNode: SegmentHost['runNode']) => Promise<SegmentResult>): Promise<SegmentResult>
  /** One attempt of an external node. */
  call(node: ProgramNode, scope: Scope, path: string): Promise<Outcome>
  /** Waits for the end of a child run; undefined if the time is over. */
  childEnd(runId: string): Promise<ChildEnd | undefined>
  report(line: string): void
  signal: AbortSignal
  /** Default: those of runs. */
  limits?: Limits
  /** Ends the trial where only an answer could continue it; by default such a wait fails. */
  stopsAtWaits?: true
  /** Rows of nodes, those of items of loops included, after which the trial ends. */
  mostNodes?: number
}

/** How a trial ended: as the run, at a wait, at a limit of nodes, or because its time was over. */
export interface Trialled {
  /** The last row of each node, by its key. */
  rows: ReadonlyMap<string, RunNode>
  outcome: End | 'waiting' | 'too_large' | 'timed_out'
}

const NOT_ANSWERED: RunError = {
  code: 'test_does_not_wait',
  message: 'A test does not wait for an answer: the item ends here.',
}

/**
 * Runs a program as a run does, but in memory: timers have fired at once, each call has one attempt, and a wait for an
 * answer fails. `nodes`: outputs that placeholders read, by node id.
 */
export async function runTrial(
  program: Program,
  given: RunFacts,
  nodes: Record<string, { output?: unknown; error?: unknown }>,
  host: TrialHost,
): Promise<Trialled> {
  const rows = new Map(Object.entries(nodes).map(([id, given]) => [id, sampleRow(id, given)]))
  const loops = new Map<string, LoopChange>()
  const iterations = new Map<string, RunIteration>()
  let happened: Happened[] = []
  let children = new Map<string, ChildEnd>()
  let run: RunFacts['run'] & { data_bytes: number } = { ...given.run, data_bytes: 0 }
  for (let segment = 1; !host.signal.aborted; segment++) {
    const open = [...iterations.values()].filter((one) => one.settled_segment === null)
    const paths = new Set(['', ...open.map(iterationPath)])
    const facts = { ...given, run }
    const state = {
      ...facts,
      nodes: [...rows.values()].filter(({ path }) => paths.has(path)),
      loops: [...loops.values()].filter((loop) => loop.open),
      iterations: open,
    }
    const input = { organization_id: facts.organization.id, run_id: facts.run.id, segment, happened }
    const result = await host.segment((runNode) =>
      runSegment(program, structuredClone(state), input, {
        limits: host.limits ?? LIMITS,
        clock: Date.now,
        children,
        runNode: async (node, scope, path) => cut(await runNode(node, scope, path), node, path, host),
        loops: {
          items: async ({ loop }, from, count) => itemsOf(loops.get(loop), from, count),
          turn: async ({ loop }, from) => turnOf(loops.get(loop), iterations, from),
          results: async (loop) => resultsOf(iterations.values(), loop),
        },
      }),
    )
    for (const row of result.nodes) rows.set(nodeKey(row.path, row.node_id), row)
    for (const loop of result.loops) loops.set(loop.loop, { ...loops.get(loop.loop), ...loop })
    for (const one of result.iterations) iterations.set(iterationPath(one), one)
    if (result.end) return { rows, outcome: result.end }
    // Cleanup nodes read the outcome.
    run = {
      ...run,
      data_bytes: run.data_bytes + result.characters,
      ...(result.ending && { ending: result.ending }),
    }
    if (rows.size > (host.mostNodes ?? Infinity)) return { rows, outcome: 'too_large' }
    const ended = await awaited(
      result,
      { program, facts: { ...given, run }, rows, iterations, loops: [...loops.values()] },
      host,
    )
    if (!ended) break
    ;({ happened, children } = ended)
    const continues = result.answer.commands.some(({ type }) => type === 'continue')
    if (happened.length === 0 && children.size === 0 && !continues) return { rows, outcome: 'waiting' }
  }
  return { rows, outcome: 'timed_out' }
}

interface Trial {
  program: Program
  facts: RunFacts
  rows: Map<string, RunNode>
  iterations: ReadonlyMap<string, RunIteration>
  loops: LoopChange[]
}

/** What happened to all that a segment waits for; undefined if the time is over. */
async function awaited(
  { answer, waits }: SegmentResult,
  trial: Trial,
  host: TrialHost,
): Promise<{ happened: Happened[]; children: Map<string, ChildEnd> } | undefined> {
  const children = new Map<string, ChildEnd>()
  const happened: Happened[] = []
  const calls = answer.commands.filter((command) => command.type === 'external')
  for (const command of answer.commands)
    if (command.type === 'timer') {
      const { type, node, path } = command
      const key = nodeKey(path ?? '', node)
      // The wait for an answer is below.
      if (findNodeType(trial.program.nodes[node]!.type)?.answered) continue
      host.report(`${key}: would wait until ${trial.rows.get(key)!.wait_until}`)
      happened.push({ type, node, ...(path === undefined ? {} : { path }) })
    }
  for (const wait of waits) {
    const { path, node_id: node } = wait
    if ('for' in wait) {
      if (host.stopsAtWaits) continue
      happened.push({ type: 'failed', node, path, ...NOT_ANSWERED })
      continue
    }
    const end = 'child_run_id' in wait ? await host.childEnd(wait.child_run_id) : undefined
    if (!end) return undefined
    children.set(nodeKey(path, node), end)
  }
  await Promise.all(
    calls.map(async (command) => {
      happened.push(await called(command, trial, host))
    }),
  )
  return { happened, children }
}

/** Makes a call, and writes its row as its activity would. */
async function called(
  { node: id, path = '' }: Command & { type: 'external' },
  { program, facts, rows, iterations, loops }: Trial,
  host: TrialHost,
): Promise<Happened> {
  const node = program.nodes[id]!
  const key = nodeKey(path, id)
  const outcome = await host.call(node, scopeAt(path, { facts, rows, iterations, loops }), path)
  const row = rows.get(key)!
  row.input = outcome.input
  row.ended_at = new Date().toISOString()
  if (outcome.status === 'completed') {
    Object.assign(row, { status: 'completed', output: outcome.output, handle: outcome.handle })
  } else if (outcome.status === 'failed') Object.assign(row, { status: 'failed', error: outcome.error })
  return { type: 'settled', node: id, ...(path === '' ? {} : { path }) }
}

function scopeAt(path: string, { facts, rows, iterations, loops }: Omit<Trial, 'program'>): Scope {
  const open = [...iterations.values()].filter((one) => one.settled_segment === null)
  const { frames } = framesOf({
    nodes: [...rows.values()],
    loops: loops.filter((loop) => loop.open),
    iterations: open,
  })
  return scopeOf(facts, frames.get(path)!)
}

/** A loop runs its first items only. */
function cut(
  outcome: Outcome | 'later',
  { id }: ProgramNode,
  path: string,
  { report }: TrialHost,
): Outcome | 'later' {
  if (outcome === 'later' || outcome.status !== 'looping') return outcome
  if ('max_turns' in outcome.loop) {
    const { max_turns } = outcome.loop
    if (max_turns <= TRIAL_ITEMS) return outcome
    report(`${nodeKey(path, id)}: runs at most ${TRIAL_ITEMS} of ${max_turns} turns`)
    return { ...outcome, loop: { ...outcome.loop, max_turns: TRIAL_ITEMS, on_limit: 'stop' } }
  }
  const { items } = outcome.loop
  if (items.length <= TRIAL_ITEMS) return outcome
  report(`${nodeKey(path, id)}: runs the first ${TRIAL_ITEMS} of ${items.length} items`)
  return { ...outcome, loop: { ...outcome.loop, items: items.slice(0, TRIAL_ITEMS) } }
}

const itemsOf = (loop: LoopChange | undefined, from: number, count: number) =>
  (loop?.items ?? []).slice(from, from + count).map((item, index) => ({ index: from + index, item }))

/** The next turn of a loop that repeats: it reads the result of the one before. */
const turnOf = (
  loop: LoopChange | undefined,
  iterations: ReadonlyMap<string, RunIteration>,
  index: number,
) => {
  const before = iterations.get(`${loop?.loop}:${index - 1}`)
  return { index, item: before ? before.output : loop?.items?.[0] }
}

const resultsOf = (iterations: Iterable<RunIteration>, loop: string) =>
  [...iterations]
    .filter((one) => one.loop === loop && one.settled_segment !== null)
    .map(({ index, status, output, error }) => ({ index, status, output, ...(error && { error }) }))

/** The row of a node that has ended before the trial. */
const sampleRow = (id: string, { output, error }: { output?: unknown; error?: unknown }): RunNode => ({
  path: '',
  node_id: id,
  node_type: '',
  title: id,
  status: error ? 'failed' : 'completed',
  attempt: 1,
  input: null,
  output: output ?? null,
  handle: null,
  error: (error as RunError | null | undefined) ?? null,
  wait_until: null,
  segment: 0,
  settled_segment: 0,
  position: 0,
  started_at: SAMPLED,
  ended_at: SAMPLED,
})
const SAMPLED = new Date(0).toISOString()
