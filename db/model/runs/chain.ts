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
        message: `The run was not started: it would exceed the limit of ${CHAIN_DEPTH} runs that start each other, which is probably a loop. The last of them is ${cause}.`,
      }
    : undefined
