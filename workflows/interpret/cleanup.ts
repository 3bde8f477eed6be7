import type { Command } from '../bundle/protocol.ts'
import type { CleanupRole, Program, ProgramNode } from '../language/definition.ts'
import type { EndStatus } from '../shared/statuses.ts'
import { isUndoable } from './early-end.ts'
import { at } from './open-nodes.ts'
import type { Rows } from './rows.ts'
import type { Ending, RunError, RunNode } from './run-state.ts'

/** How a run ends. */
export interface End {
  status: EndStatus
  outputs: unknown
  error: RunError | null
}

export interface CleanupDeps {
  program: Program
  rows: Rows
  commands: Command[]
}

/**
 * The cleanup of a run whose outcome is decided: nothing else starts, its undo, on_cancel and finally nodes run one after
 * the other, and then it ends with that outcome. What is still to do follows from the rows, so that the cleanup survives
 * pauses, lost workflows and resets as every other part of a run does.
 */
export class Cleanup {
  private readonly deps: CleanupDeps

  constructor(deps: CleanupDeps) {
    this.deps = deps
  }

  /**
   * Stops all other nodes. A call that has an undo and is being made, or may have been made by an attempt that was lost,
   * is awaited: whether it had its effect is not known before. @returns whether there is anything to clean up.
   */
  begin(status: EndStatus): boolean {
    const { program, rows } = this.deps
    if (!program.cleanup) return false
    // A run that completes undoes nothing.
    const undo = status === 'completed' ? [] : program.cleanup.undo
    const undone = new Set(undo.map((id) => program.nodes[id]!.undoes))
    const isAwaited = (row: RunNode) =>
      row.path === '' &&
      undone.has(row.node_id) &&
      row.status === 'running' &&
      (row.attempt_token != null || row.may_have_called === true)
    const open = rows.open()
    // One that has ended, but was not reported yet, has ended nevertheless.
    const hasEnded = (row: RunNode) => row.status === 'completed' && undone.has(row.node_id)
    const isDue = this.due(status).length > 0 || open.some((row) => isAwaited(row) || hasEnded(row))
    if (!isDue) return false
    const awaited = new Set(open.filter(isAwaited))
    for (const row of open) if (!awaited.has(row)) this.stop(row)
    rows.cancel(awaited)
    return true
  }

  /** Ends the wait for the calls whose attempt has failed: another attempt would only have an effect to undo. */
  dropRetries(): void {
    const { program, rows } = this.deps
    for (const row of rows.open()) {
      if (row.status !== 'running' || program.nodes[row.node_id]?.role || !row.next_attempt_at) continue
      // It only waits for its turn to repeat an attempt that was lost.
      if (row.may_have_called) continue
      this.stop(row)
      rows.settle(row, 'cancelled', null)
    }
  }

  /** The next node, once nothing is open; undefined if all have run. */
  next({ status }: Ending): ProgramNode | undefined {
    const { rows } = this.deps
    if (rows.open().length > 0) return undefined
    return this.due(status).find(({ id }) => !rows.root.rows.has(id))
  }

  /** The end of the run, with the failures of its cleanup in its error. `isOver`: the time of the cleanup is. */
  end({ status, outputs, error }: Ending, isOver: boolean): End {
    const failed = this.failed()
    const missed = isOver ? this.missed(status) : []
    const unsuccessful = [...failed, ...missed]
    if (unsuccessful.length === 0) return { status, outputs, error }
    const sentences = [
      failed.length > 0 && `Failed at the end of the run: ${named(failed)}.`,
      missed.length > 0 && `Not done within the time limit of its end: ${named(missed)}.`,
    ].filter((sentence) => sentence !== false)
    const reason = error?.message.replace(/[^.!?]$/, '$&.')
    const message = [reason, ...sentences].filter(Boolean).join(' ').slice(0, 2_000)
    const details = { ...error?.details, cleanup: unsuccessful.slice(0, MOST_NAMED) }
    if (error) return { status, outputs, error: { ...error, message, details } }
    return { status: 'failed', outputs, error: { code: 'cleanup_failed', message, details } }
  }

  private failed(): Unsuccessful[] {
    const { program, rows } = this.deps
    return [...rows.root.rows.values()].flatMap(({ node_id, status, error }) => {
      const { role, on_error } = program.nodes[node_id] ?? {}
      if (!role || status !== 'failed' || on_error === 'continue') return []
      const { code, message } = error ?? { code: 'failed', message: 'The node failed.' }
      return [{ node_id, role, code, message: message.slice(0, 500) }]
    })
  }

  /** The undo nodes of calls that are still awaited, and the due nodes that have not ended. */
  private missed(status: EndStatus): Unsuccessful[] {
    const { program, rows } = this.deps
    const isDone = ({ id }: ProgramNode) => (rows.root.rows.get(id)?.settled_segment ?? null) !== null
    const isAwaited = ({ undoes = '' }: ProgramNode) => rows.root.rows.get(undoes)?.status === 'running'
    const awaited = program.cleanup!.undo.map((id) => program.nodes[id]!).filter(isAwaited)
    const over = 'The time limit of the end of the run was over.'
    const miss = ({ id, role }: ProgramNode, message: string): Unsuccessful => ({
      node_id: id,
      role: role!,
      code: 'timeout',
      message,
    })
    return [
      ...awaited.map((node) => miss(node, `${over} The call of ${node.undoes} may have had its effect.`)),
      ...this.due(status).flatMap((node) => (isDone(node) ? [] : [miss(node, over)])),
    ]
  }

  /** The cleanup nodes of an outcome, in the order in which they run. */
  private due(status: EndStatus): ProgramNode[] {
    const { program, rows } = this.deps
    const { undo, on_cancel, finally: always } = program.cleanup!
    const ids = [
      ...(status === 'completed' ? [] : undoOrder(program, undo, [...rows.root.rows.values()])),
      ...(status === 'cancelled' ? on_cancel : []),
      ...always,
    ]
    return ids.map((id) => program.nodes[id]!)
  }

  /** Tells the workflow not to wait for a node. */
  private stop(row: RunNode): void {
    const { program, commands } = this.deps
    const calls = row.status === 'running' && program.nodes[row.node_id]?.effect === 'external'
    if (calls || (row.status === 'waiting' && row.wait_until !== null))
      commands.push({ type: 'cancel', ...at(row) })
  }
}

interface Unsuccessful {
  node_id: string
  role: CleanupRole
  code: string
  message: string
}

/** The nodes that an error lists. */
const MOST_NAMED = 20

const named = (nodes: Unsuccessful[]) =>
  nodes
    .slice(0, MOST_NAMED)
    .map(({ node_id, code, message }) =>
      code === 'timeout' ? node_id : `${node_id} (${message.slice(0, 200)})`,
    )
    .join(', ')

/** The undo nodes of the nodes with an effect: those of the node that ended last first. */
function undoOrder(program: Program, undo: string[], rows: RunNode[]): string[] {
  const completed = rows.filter(isUndoable).sort(byCompletion)
  const of = new Map<string, string[]>()
  for (const id of undo) {
    const { undoes = '' } = program.nodes[id]!
    of.set(undoes, [...(of.get(undoes) ?? []), id])
  }
  return completed.reverse().flatMap(({ node_id }) => of.get(node_id) ?? [])
}

/**
 * The order in which nodes completed. The clocks of workers differ, so times order only those that one segment was told
 * of: these had started before it, and do not depend on each other. Those that it ran itself follow, as they started.
 */
function byCompletion(a: RunNode, b: RunNode): number {
  if (a.settled_segment !== b.settled_segment) return (a.settled_segment ?? 0) - (b.settled_segment ?? 0)
  const [earlierA, earlierB] = [a, b].map(({ segment, settled_segment }) => segment < (settled_segment ?? 0))
  if (earlierA !== earlierB) return earlierA ? -1 : 1
  if (earlierA && a.ended_at !== b.ended_at) return (a.ended_at ?? '') < (b.ended_at ?? '') ? -1 : 1
  return a.position - b.position
}
