import type { RunError } from '../../../workflows/interpret/run-state.ts'
import { CHAIN_DEPTH } from '../../../workflows/shared/limits.ts'

/**
 * Runs that start each other, through nodes, events and failures, form chains. Their limits are the same for all three,
 * because a cycle may contain all three: the depth of a chain, and what may descend from its root.
 */

/** The error if a run of this depth must not be started, else undefined. `cause` is the run before it. */
export const chainError = (
  depth: number,
  cause: string | null,
): (RunError & { code: 'chain_too_long' }) | undefined =>
  depth > CHAIN_DEPTH
    ? {
        code: 'chain_too_long',
        message: `The run was not started: it would exceed the limit of ${CHAIN_DEPTH} runs that start each other, which is probably a loop. The last of them is ${cause}.`,
      }
    : undefined

/** The error of a run that is skipped because too much descends from its root, a run or an event. */
export const tooWide = (root: string, limit: number): RunError & { code: SkipCode } => ({
  code: 'chain_too_wide',
  message: `The run was skipped: ${root} led to more than ${limit} runs and events within a day, as many as the plan allows, which is probably a loop.`,
})

/** The error of a run that is skipped because the organization has too many queued runs. */
export const tooManyQueued = (limit: number): RunError & { code: SkipCode } => ({
  code: 'too_many_queued',
  message: `The run was skipped: the organization has ${limit} queued runs, as many as its plan allows.`,
})

/** The codes of the errors of runs that are skipped when an event triggers them. */
export const SKIP_CODES = ['chain_too_wide', 'too_many_queued'] as const
export type SkipCode = (typeof SKIP_CODES)[number]
/** Why an event did not start a run; one in too long a chain is recorded as failed. */
export type UnstartedCode = SkipCode | 'chain_too_long'
