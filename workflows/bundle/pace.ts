/**
 * How often the run workflow tries and looks. In a file of its own, which the tests replace: theirs are shorter
 * (`test/support/bundle.ts`). A change of `drainLooks` needs a version of the workflow: histories would replay otherwise.
 */
export const PACE = {
  /** Attempts of one call of `advance`, some half an hour: then the workflow looks at the length of its history. */
  attempts: 100,
  firstRetry: '100 ms',
  lastRetry: '20 seconds',
  /** Longer pauses are timers: the history shows them, and they occupy no workflow task. */
  longestPauseInTask: '2 seconds',
  /** Between two looks at the calls in progress, while no node starts. */
  drainLook: '1 minute',
  /** Looks after which nodes start again, although calls are in progress. */
  drainLooks: 5,
} as const
