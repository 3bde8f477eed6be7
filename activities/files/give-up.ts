import { Context } from '@temporalio/activity'
import { z } from 'zod'
import { FILE_IDS, type FileTable } from '../../db/files/moves/queue.ts'
import { isDatabaseUnavailable, sqlState } from '../../db/postgres/sql-state.ts'
import type { FileAnswer, FileInput } from '../../workflows/bundle/files.ts'
import type { FilesDeps } from './deps.ts'

const MAX_ATTEMPTS = 4

type Work = (input: FileInput) => Promise<FileAnswer>

/**
 * Fails the file, and frees its slot, after several permanent failures of a turn: a fault of the code, or an error of
 * PostgreSQL. An unavailable database is retried without limit.
 */
export function failingAfterRetries({ log }: FilesDeps, table: FileTable, work: Work, fail: Work): Work {
  return async (input) => {
    try {
      return await work(input)
    } catch (error) {
      if (!isPermanent(error) || Context.current().info.attempt < MAX_ATTEMPTS) throw error
      const { message, code } = error
      log.error(
        { organization_id: input.organization_id, [FILE_IDS[table]]: input.id, code, reason: message },
        'an import or export failed',
      )
      return fail(input)
    }
  }
}

/** A fault of the code, or an error of PostgreSQL that a retry would cause again. */
const isPermanent = (error: unknown): error is Error & { code?: string } =>
  error instanceof TypeError ||
  error instanceof RangeError ||
  error instanceof z.ZodError ||
  (sqlState(error) !== undefined && !isDatabaseUnavailable(error))
