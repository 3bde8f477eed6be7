import { Context } from '@temporalio/activity'
import { z } from 'zod'
import type { FileAnswer, FileInput } from '../../workflows/files.ts'
import type { FilesDeps } from './deps.ts'

const MAX_ATTEMPTS = 4

type Work = (input: FileInput) => Promise<FileAnswer>

/**
 * A turn that the code or PostgreSQL has refused again and again is a mistake of ours, which more attempts do not mend: the file
 * fails, and frees its slot. A database that is away is waited for, however long.
 */
export function givingUp({ log }: FilesDeps, work: Work, fail: Work): Work {
  return async (input) => {
    try {
      return await work(input)
    } catch (error) {
      if (!isMistake(error) || Context.current().info.attempt < MAX_ATTEMPTS) throw error
      const { message, code } = error
      log.error(
        { organization_id: input.organization_id, id: input.id, code, reason: message },
        'a file failed',
      )
      return fail(input)
    }
  }
}

/** A fault of the code; or a SQLSTATE, but for those of a lost connection, a deadlock, or a server that is full or shutting down. */
const isMistake = (error: unknown): error is Error & { code?: string } =>
  error instanceof TypeError ||
  error instanceof RangeError ||
  error instanceof z.ZodError ||
  (error instanceof Error && /^(?!08|40|53|57P)[0-9A-Z]{5}$/.test(String((error as { code?: unknown }).code)))
