/**
 * The statuses of imports and exports, and the tables of all moves between them. The files in `db/files/moves` contain
 * the statements: nothing else changes `imports.status` or `exports.status`. `test/db/files/moves.test.ts` reads these
 * tables and tries every move on every status.
 *
 * imports: inserted as `created` (`db/imports/imports.ts`).
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | markImportReady | created, ready, stopped, completed, failed | ready | the API, when a file was uploaded | no row was written except in a dry run | the new file replaces the old one; progress is reset |
 * | queueImport | ready, stopped, completed, failed | queued | the API, to start or resume | started: no row was written except in a dry run; resumed: it was stopped or failed | counts the start: a new workflow; wakes the relay |
 * | markFilesStarted | queued | running | the relay, after Temporal accepted the start | of the same start | ends the lease |
 * | failFileStart | queued | failed | the relay, when Temporal rejects the start | of the same start | ends the lease |
 * | beginImport | queued | running | the import's workflow | of the same start; the row is locked | ends the lease |
 * | recordImportProgress | running | running, completed, failed | the import's workflow | the row is locked | the place in the file, the counts |
 * | stopImport | queued, running | stopped | the API | | the workflow ends before its next transaction |
 * | endUnrecordedFile | running | stopped | the sweep, when Temporal has ended the workflow | of the same start | frees the slot; it can be resumed |
 *
 * exports: inserted as `queued` (`db/exports/exports.ts`).
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | markFilesStarted | queued | running | the relay, after Temporal accepted the start | | ends the lease |
 * | failFileStart | queued | failed | the relay, when Temporal rejects the start | | ends the lease |
 * | recordExportProgress | queued, running | running, completed, failed | the export's workflow | the row is locked | the cursor, the counts |
 * | endUnrecordedFile | running | failed | the sweep, when Temporal has ended the workflow | | frees the slot |
 * | expireExport | completed | expired | the sweep | its retention is over | the file is deleted |
 *
 * A move from any other status changes nothing: it returns false or a count of 0. The moves of `imports.ts` and
 * `exports.ts`, whose callers hold the row's lock, throw instead.
 */
export const IMPORT_STATUSES = [
  'created',
  'ready',
  'queued',
  'running',
  'stopped',
  'completed',
  'failed',
] as const
export type ImportStatus = (typeof IMPORT_STATUSES)[number]

export const EXPORT_STATUSES = ['queued', 'running', 'completed', 'failed', 'expired'] as const
export type ExportStatus = (typeof EXPORT_STATUSES)[number]
