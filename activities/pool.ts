import type { Failure } from '../workflows/interpret/execute.ts'

/** What decides where a node may run. */
interface Placement {
  /** The pool that the node names. */
  wanted: string | undefined
  /** The pool of this worker. */
  own: string | undefined
  /** The pools that the organization may use now. */
  allowed: readonly string[] | undefined
}

/**
 * The failure of a node that this worker must not run; undefined if it may. The check is here, before each call, and not
 * only where the call is queued: an operator may have withdrawn the pool since then, and a pool's worker reaches hosts
 * that other organizations must not reach.
 */
export function poolRefusal({ wanted, own, allowed = [] }: Placement): Failure | undefined {
  if (wanted === own && (wanted === undefined || allowed.includes(wanted))) return undefined
  const pool = wanted ?? own
  const message = `The organization may not use the worker pool ${pool}: the operator of the service decides it (npm run set-pools).`
  return { error: { code: 'unknown_pool', message }, retryable: false }
}
