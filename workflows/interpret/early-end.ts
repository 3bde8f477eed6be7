import { NodeError } from '../language/node-error.ts'
import { findNodeType } from '../nodes/index.ts'
import { isRepeat, type OpenLoop } from './frames.ts'
import type { ItemResult, RunNode } from './run-state.ts'
import { capped } from './storable.ts'

/**
 * Loops that end before their last item, because an item failed or the run ends. If the program says so (`undone_early`),
 * what their completed items have done is undone as that of a completed loop is: the row of such a loop has an output,
 * while those of other nodes that failed or were cancelled have nothing to undo.
 */

/** Whether a node has had an effect that its undo compensates. */
export const isUndoable = ({ status, node_type, output }: RunNode): boolean =>
  status === 'completed' || (output != null && findNodeType(node_type)?.body !== undefined)

/** The output of a loop that ended early. `items`: the results so far; null if they are too large, or follow. */
export function earlyOutput(loop: OpenLoop, items: ItemResult[] | null, maxBytes: number): unknown {
  const output = isRepeat(loop) ? ofTurns(loop, items) : ofItems(loop, items)
  try {
    return capped(output, maxBytes)
  } catch (error) {
    if (!(error instanceof NodeError) || items === null) throw error
    return earlyOutput(loop, null, maxBytes)
  }
}

const ofItems = ({ state: { count, succeeded, failed } }: OpenLoop, items: ItemResult[] | null) => ({
  count,
  succeeded,
  failed,
  items,
})

function ofTurns({ state: { succeeded } }: OpenLoop, turns: ItemResult[] | null) {
  const completed = turns?.filter(({ status }) => status === 'completed')
  const results = completed?.map(({ output }) => output ?? null) ?? null
  return { turns: succeeded, ended_by: null, last: results?.at(-1) ?? null, results }
}
