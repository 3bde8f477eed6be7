/**
 * The statuses of batches of runs and of their items, and the tables of all moves between them. `db/runs/batches.ts`
 * contains the statements. `test/db/runs/batches.test.ts` reads these tables and tries every move on every status.
 *
 * batches: one is open until it has `ended_at`.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | createBatch | (none) | open, ended | the API | ended if no run matches | inserts an item for each run; wakes the workers |
 * | advanceBatch | open | open, ended | a worker, page by page | ended: with the last item | makes the next items |
 *
 * items: one for each run of the batch.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | createBatch | (none) | pending | the API | the run matches the filter | |
 * | advanceBatch | pending | done, refused | a worker | refused: the run cannot be retried, cancelled or migrated | retries, cancels or migrates the run in the same transaction |
 *
 * A move from any other status changes nothing: `advanceBatch` returns false.
 */
export const BATCH_STATUSES = ['open', 'ended'] as const

export const BATCH_ITEM_STATUSES = ['pending', 'done', 'refused'] as const
export type BatchItemStatus = (typeof BATCH_ITEM_STATUSES)[number]
