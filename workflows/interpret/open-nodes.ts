import type { Command, Happened, NodeAt } from '../bundle/protocol.ts'
import type { Program, ProgramNode } from '../language/definition.ts'
import type { EndStatus } from '../shared/statuses.ts'
import { nodeKey } from './frames.ts'
import type { RunError, RunFacts, RunNode } from './run-state.ts'

/**
 * The command by which the workflow waits for a node; undefined if the node does not wait. `now` is in milliseconds,
 * `pools` are those that the organization may use. `alone`: it may be cancelled before the run ends.
 */
export function commandOf(
  node: ProgramNode,
  row: RunNode,
  now: number,
  { pools, alone = false }: { pools?: readonly string[] | undefined; alone?: boolean } = {},
): Command | undefined {
  if (row.status === 'waiting' && row.wait_until !== null) {
    const ms = Math.max(1, Date.parse(row.wait_until) - now)
    return { type: 'timer', ...at(row), title: node.title, ms }
  }
  if (row.status !== 'running' || node.effect !== 'external') return undefined
  const { type, title, timeout_ms, retry } = node
  const delay = row.next_attempt_at ? Date.parse(row.next_attempt_at) - now : 0
  const later = delay > 0 ? { delay_ms: delay } : {}
  const pool = usablePool(node, pools)
  const where = pool === undefined ? {} : { pool }
  return {
    type: 'external',
    ...at(row),
    node_type: type,
    title,
    timeout_ms,
    retry,
    ...later,
    ...where,
    ...(alone && { alone }),
  }
}

/**
 * The pool that makes the calls of a node. A node whose pool the organization may not use goes to the workers without a
 * pool, which refuse it (`activities/pool.ts`): in the queue of a pool that does not exist it would wait for ever.
 */
export const usablePool = (
  { pool }: Pick<ProgramNode, 'pool'>,
  pools: readonly string[] = [],
): string | undefined => (pool !== undefined && pools.includes(pool) ? pool : undefined)

/** The node of a row, as workflow messages name it. */
export const at = ({ node_id, path }: Pick<RunNode, 'node_id' | 'path'>): NodeAt =>
  path === '' ? { node: node_id } : { node: node_id, path }

/** The command that ends a workflow. Its message is cut, because histories store it; errors of runs hold no secrets. */
export function endCommand(status: EndStatus | 'paused', error: RunError | null): Command & { type: 'end' } {
  if (status === 'completed' || status === 'cancelled' || status === 'paused' || !error)
    return { type: 'end', status }
  return { type: 'end', status, error: { code: error.code, message: error.message.slice(0, 1_000) } }
}

export interface Reissued {
  /** What has happened although no workflow waited for it. */
  happened: Happened[]
  commands: Command[]
  /** The remainder of the run's timeout, if it has one. */
  timeout_ms: number | undefined
  /** The key of the last node, if the commands of others do not fit. */
  after?: string
}

/** The part of the open nodes whose commands one answer holds. */
interface Part {
  /** The key of the last node of the part before. */
  after?: string
  /** Bytes of the commands as JSON, after which the part ends. */
  bytes: number
}

/**
 * The commands for all that a workflow must wait for, from the rows alone: for a workflow that starts in the middle of
 * a run, or is ahead of a restored database. In parts, in the order of the nodes' keys, because rows change in between.
 */
export function reissue(
  program: Program,
  run: Timed,
  rows: Iterable<RunNode>,
  now: number,
  { after, bytes }: Part,
  pools?: readonly string[],
): Reissued {
  const happened: Happened[] = []
  const commands: Command[] = []
  let written = 0
  let last = after
  for (const { key, row } of inOrder(rows, after)) {
    const node = program.nodes[row.node_id]
    if (!node || row.settled_segment !== null) continue
    const command = commandOf(node, row, now, { pools, alone: program.cleanup !== undefined })
    if (command) {
      if (written > bytes) return { happened, commands, timeout_ms: undefined, after: last! }
      written += Buffer.byteLength(JSON.stringify(command))
      commands.push(command)
      last = key
    }
    // It waits for a child run, whose end is read from the database, or for the items of a loop.
    else if (row.status === 'waiting') continue
    // An external node has ended, but its end was never reported.
    else happened.push({ type: 'settled', ...at(row) })
  }
  const left = timeLeft(program, run, now)
  if (left === undefined) return { happened, commands, timeout_ms: left }
  if (left <= 0) happened.push({ type: 'timeout' })
  return { happened, commands, timeout_ms: Math.max(1, left) }
}

type Timed = Pick<RunFacts['run'], 'started_at' | 'paused_ms' | 'ending'>

/**
 * The milliseconds that are left to a run, or to its cleanup once it has begun; none or less if the timeout is exceeded;
 * undefined without one.
 */
export function timeLeft(
  { settings: { timeout_ms }, cleanup }: Pick<Program, 'settings' | 'cleanup'>,
  run: Timed,
  now: number,
): number | undefined {
  if (run.ending) {
    const { at, paused_ms } = run.ending
    return (cleanup?.timeout_ms ?? 0) - (now - Date.parse(at) - ((run.paused_ms ?? 0) - paused_ms))
  }
  if (timeout_ms === undefined) return undefined
  const elapsed = run.started_at === null ? 0 : now - Date.parse(run.started_at) - (run.paused_ms ?? 0)
  return timeout_ms - elapsed
}

function inOrder(rows: Iterable<RunNode>, after: string | undefined) {
  return [...rows]
    .map((row) => ({ key: nodeKey(row.path, row.node_id), row }))
    .filter(({ key }) => after === undefined || key > after)
    .sort((a, b) => (a.key < b.key ? -1 : 1))
}
