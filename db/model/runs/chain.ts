import type { RunError } from '../../../workflows/interpret/run-state.ts'
import { CHAIN_DEPTH } from '../../../workflows/shared/limits.ts'

/**
 * The error if a run of this depth must not be started, else undefined. The limit is the same for runs started by
 * nodes, events and failures, because a cycle may contain all three. `cause` is the run before it.
 */
export const chainError = (depth: number, cause: string | null): RunError | undefined =>
  depth > CHAIN_DEPTH
    ? {
        code: 'chain_too_long',
        message: `The run was not started: more than ${CHAIN_DEPTH} runs that start each other have led to it, which is probably a loop. The last one was ${cause}.`,
      }
    : undefined
