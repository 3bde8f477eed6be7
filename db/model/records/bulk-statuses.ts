/**
 * The statuses of bulk jobs and of their items, and the tables of all moves between them. `db/records/bulk/` contains the
 * statements.
 *
 * jobs: one is open until it has `ended_at`. One that failed has an `error` too, and has changed nothing.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | insertJob | (none) | open | the API | | wakes the workers |
 * | advanceBulkJob | open | open, ended | a worker, page by page | ended: with the last item | lists the next records, or changes them |
 * | advanceBulkJob | open | failed | a worker | the records cannot all be listed | |
 *
 * items: one for each record of the job.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | listNext | (none) | pending | a worker | the record matches the selection; of an undo, the job changed it | |
 * | advanceBulkJob | pending | done, refused | a worker | refused: the record could not be changed | changes the record in the same transaction |
 */
export const BULK_ACTIONS = ['update', 'delete', 'reassign', 'undo'] as const
export type BulkAction = (typeof BULK_ACTIONS)[number]

export const BULK_ITEM_STATUSES = ['pending', 'done', 'refused'] as const
export type BulkItemStatus = (typeof BULK_ITEM_STATUSES)[number]
