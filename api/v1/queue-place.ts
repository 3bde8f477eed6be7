import { AppError } from '../../db/model/errors.ts'
import type { RouteRequest } from '../http/route.ts'

/**
 * Takes a place for a run that a request is about to queue. Throws quota_exceeded if the organization has as many queued
 * runs as its plan allows. It is known to the second, so that a start costs no statement.
 */
export async function takeQueuePlace({ caller, deps }: Pick<RouteRequest, 'caller' | 'deps'>): Promise<void> {
  const { granted, limit } = await deps.queuedRuns.take(deps.db.system, caller.organization.id)
  if (granted > 0) return
  throw new AppError(
    'quota_exceeded',
    `the organization has ${limit} queued runs, as many as its plan allows`,
    {
      retry_after: RETRY_SECONDS,
      hint: 'wait until some have started, or cancel queued runs: POST /v1/run-batches',
    },
  )
}

const RETRY_SECONDS = 5
