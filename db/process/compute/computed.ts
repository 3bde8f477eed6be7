import { isDeepStrictEqual } from 'node:util'

/**
 * Long computations for a transaction, made outside of it: a transaction that waits for a thread would hold its
 * connection and its locks. `attempt` calls `computed` for a result. If it is not known yet, the call throws
 * NeedsComputation, the transaction rolls back, `compute` makes the result, and `attempt` begins again. `computed`
 * throws what `compute` has thrown; NoThread ends all of it instead.
 */
export async function withComputed<Args extends unknown[], Result, T>(
  compute: (...args: Args) => Promise<Result>,
  attempt: (computed: (...args: Args) => Result) => Promise<T>,
): Promise<T> {
  const known: { args: Args; outcome: PromiseSettledResult<Result> }[] = []
  const computed = (...args: Args): Result => {
    const found = known.find((one) => isDeepStrictEqual(one.args, args))
    if (!found) throw new NeedsComputation(known, args)
    if (found.outcome.status === 'rejected') throw found.outcome.reason
    return found.outcome.value
  }
  for (;;)
    try {
      return await attempt(computed)
    } catch (error) {
      // That of another `withComputed` around this one.
      if (!(error instanceof NeedsComputation) || error.known !== known) throw error
      const args = error.args as Args
      const [outcome] = await Promise.allSettled([compute(...args)])
      if (outcome.status === 'rejected' && endsAll(outcome.reason)) throw outcome.reason
      known.push({ args, outcome })
    }
}

const endsAll = (reason: unknown) => reason instanceof NeedsComputation || reason instanceof NoThread

/** Too many computations wait for a thread. Nothing is computed, and nothing has failed: it is to be asked for later. */
export class NoThread extends Error {
  override readonly name = 'NoThread'

  constructor() {
    super('too many computations wait for a thread')
  }
}

/** A transaction needs a result that must be computed first. Code between `computed` and `withComputed` lets it pass. */
export class NeedsComputation extends Error {
  override readonly name = 'NeedsComputation'
  /** The results of the `withComputed` that makes it. */
  readonly known: unknown
  readonly args: unknown[]

  constructor(known: unknown, args: unknown[]) {
    super('a computation must be made outside of the transaction')
    this.known = known
    this.args = args
  }
}
