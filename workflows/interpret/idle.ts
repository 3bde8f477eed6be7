import type { Program } from '../language/definition.ts'
import { TURNS } from '../language/node-error.ts'
import { usablePool } from './open-nodes.ts'
import type { RunNode } from './run-state.ts'

/** What a run that goes on waits for, which its row says: the relay admits others meanwhile. */

/** Sorts after every time in ISO 8601. */
const NEVER = 'infinity'

/** When the mail or call of a node, which waits for its turn, is due; null for any other node. */
const turnOf = ({ status, error, next_attempt_at }: RunNode): string | null =>
  status === 'running' && TURNS.some((code) => code === error?.code) ? (next_attempt_at ?? null) : null

/** The end of the first timed wait or turn (ISO 8601; `infinity` without one); null if a node runs. */
export function sleepsUntil(open: RunNode[]): string | null {
  if (open.some((row) => row.status !== 'waiting' && turnOf(row) === null)) return null
  return open.reduce((first, row) => {
    const until = turnOf(row) ?? row.wait_until
    return until !== null && until < first ? until : first
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
