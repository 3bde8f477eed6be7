import type { Database } from '../postgres/connect.ts'
import type { Logger } from './log.ts'

/** Logs a line for each run, delivery, import and export that this process has ended, after its commit. */
export function logEnds(db: Pick<Database, 'onEnd'>, log: Logger): void {
  db.onEnd(({ work, status, organization_id, trace_id, ms, of }) =>
    log.info(
      { organization_id, ...of, status, ms, ...(trace_id && { trace_id: trace_id.replaceAll('-', '') }) },
      `${work} ended`,
    ),
  )
}
