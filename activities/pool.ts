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
 * The failure of a node that no worker may run; undefined if one may. The check is here, before each call, and not only
 * where the call is queued: an operator may have withdrawn the pool since then, and a pool's worker reaches hosts that
 * other organizations must not reach.
 */
export function poolRefusal({ wanted, own, allowed = [] }: Placement): Failure | undefined {
  // A call that was queued for the pool of this worker is refused like the node: neither may use the pool.
  const pool = wanted ?? own
  if (pool === undefined || allowed.includes(pool)) return undefined
  const message = `The organization may not use the worker pool ${pool}: the operator of the service decides it (npm run set-pools).`
  return { error: { code: 'unknown_pool', message }, retryable: false }
}

/**
 * Whether the call is in the queue of other workers than those that may make it: the organization was given the pool
 * after the call had been queued for the workers without one.
 */
export const isInWrongQueue = (placement: Placement): boolean =>
  placement.wanted !== placement.own && poolRefusal(placement) === undefined
