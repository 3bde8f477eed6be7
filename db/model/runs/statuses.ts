import { OPEN_RUN_STATUSES, type RunStatus } from '../../../workflows/shared/statuses.ts'

/**
 * The statuses of a run, which workflow code knows too (`workflows/shared/statuses.ts`), and the table of all moves
 * between them. The files in `db/runs/moves/` contain the statements: nothing else changes `runs.status`. A run is
 * inserted as `queued` (`db/runs/runs.ts`), which is the outbox: the relay starts its workflow.
 * `test/db/runs/moves.test.ts` reads this table and tries every move on every status.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | markRunsStarted | queued | running | the relay, after Temporal accepted the start | its first segment does not hold the row, it was not resumed since | deletes the claim |
 * | recordSegment | queued, running | running, paused, completed, failed, cancelled | `advance`, the node test | the row is locked by `lockRun` | writes node rows, answer and events; the caller ends the family (`endFamily`); wakes the relay for the free slot: after the first segment, for a run that has ended, sleeps or is paused |
 * | cancelRun | queued, paused | cancelled | the API | no relay has claimed it | cancels open nodes, ends the family, wakes the requests that wait for its end |
 * | cancelRun | queued, running | unchanged | the API | a relay has claimed it | sets cancel_requested_at, wakes the relay, which cancels in Temporal |
 * | cancelRun | paused | queued | the API | it has begun, and its version has cleanup nodes | as unpauseRun; sets cancel_requested_at: its workflow runs them |
 * | pauseRun | queued | paused | the API | no relay has claimed it | |
 * | pauseRun | queued, running | unchanged | the API | a relay has claimed it | sets pause_requested_at, wakes the relay, which tells the workflow: it pauses the run with its next segment |
 * | unpauseRun | paused | queued | the API | | counts the pause and its time, wakes the relay, which starts the run where it stopped |
 * | unpauseRun | queued, running | unchanged | the API | a pause was requested | clears the request, wakes the relay, which tells the workflow |
 * | terminateRun | queued, running, paused | terminated | the API | | as endUnrecordedRun; the relay terminates the workflow in Temporal |
 * | skipRun | queued | skipped | the relay, for a workflow with `on_limit` | no relay has claimed it | as cancelRun |
 * | failRunStart | queued | failed | the relay, when Temporal rejects the start | | as endUnrecordedRun |
 * | endUnrecordedRun | running | failed, cancelled, terminated, lost | the sweep, when Temporal has ended the workflow, or has an earlier state of it once too often | the same Temporal run owns the row | cancels open nodes, raises the event, starts the error workflow, ends the family, wakes the relay for the free slot, and has it terminate a workflow that is open |
 * | reopenRun | running, paused, completed, failed, cancelled, terminated, lost | running | `advance`, in a Temporal run that a reset made | another Temporal run owns the row, this one never did; of a workflow that resumes the run, it or another reset of it has recorded its first segment | reverts node rows from the segment on, clears the requests of a cancellation and a pause |
 * | resumeRun | queued, running | queued | the sweep and the relay, when Temporal does not know the workflow or has closed it | a run, the same Temporal run owns the row, resumed fewer than 10 times | wakes the relay, which starts it where it stopped |
 * | resumeRuns | queued, running | queued | the sweep, for many | as resumeRun | those that sleep are claimed after all others |
 * | takeOver | queued, running | running | `advance`, in the workflow that resumes the run | another Temporal run owns the row, it is the newest resume, no later segment is recorded | the attempts of the earlier Temporal run own their nodes no more |
 * | takeBack | queued, running | running | `advance`, in a workflow that Temporal has again after it was restored | another Temporal run owns the row | as takeOver |
 *
 * A move to an end removes the sealed values of a node test.
 * A move from any other status changes nothing. It returns false (cancelRun: the status; recordSegment: throws).
 */
export const isOpenRun = (status: RunStatus): status is (typeof OPEN_RUN_STATUSES)[number] =>
  (OPEN_RUN_STATUSES as readonly RunStatus[]).includes(status)
