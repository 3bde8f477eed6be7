import type { RunError } from '../../../workflows/interpret/run-state.ts'
import { CHAIN_DEPTH } from '../../../workflows/shared/limits.ts'

/**
 * Why a run of this depth must not be started; undefined if it may be. The same for runs that are started by nodes, events
 * and failures: a loop may go through all three. `cause` is the run before it.
 */
export const chainError = (depth: number, cause: string | null): RunError | undefined =>
  depth > CHAIN_DEPTH
    ? {
        code: 'chain_too_long',
        message: `The run was not started: more than ${CHAIN_DEPTH} runs that start each other have led to it, which is probably a loop. The last one was ${cause}.`,
      }
    : undefined
