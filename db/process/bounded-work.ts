import pLimit from 'p-limit'
import { AppError } from '../model/errors.ts'

/**
 * Runs costly work with at most `concurrent` at a time, in order; at most `waiting` more wait. Throws unavailable at
 * once beyond that, so that a flood neither exhausts memory nor makes everybody wait.
 */
export function boundedWork({ concurrent, waiting }: { concurrent: number; waiting: number }) {
  const limit = pLimit(concurrent)
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (limit.activeCount + limit.pendingCount >= concurrent + waiting)
      throw new AppError('unavailable', 'too many requests of this kind at once: try again', {
        retry_after: 2,
      })
    return limit(work)
  }
}
