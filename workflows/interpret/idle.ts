import type { Program } from '../language/definition.ts'
import { usablePool } from './open-nodes.ts'
import type { RunNode } from './run-state.ts'

/** What a run that goes on waits for, which its row says: the relay admits others meanwhile. */

/** Sorts after every time in ISO 8601. */
const NEVER = 'infinity'

/** The end of the first timed wait (ISO 8601; `infinity` without one); null if a node runs. */
export function sleepsUntil(open: RunNode[]): string | null {
  if (open.some(({ status }) => status !== 'waiting')) return null
  return open.reduce((first, { wait_until }) => {
    return wait_until !== null && wait_until < first ? wait_until : first
  }, NEVER)
}

/** Whether all nodes that run do so in worker pools, of which the organization may use `pools`. */
export function runsInPools(
  program: Program,
  open: RunNode[],
  pools: readonly string[] | undefined,
): boolean {
  const running = open.filter(({ status }) => status !== 'waiting')
  return (
    running.length > 0 &&
    running.every(({ node_id }) => {
      const node = program.nodes[node_id]
      return node !== undefined && usablePool(node, pools) !== undefined
    })
  )
}
