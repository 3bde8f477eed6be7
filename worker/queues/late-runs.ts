import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { listLate, raiseLate } from '../../db/runs/late.ts'
import type { Queue } from '../relay.ts'

/** Runs of one claim, in which organizations take turns: a transaction for each of them. */
const PAGE = 500
/** A run becomes late by the clock alone, so nothing wakes the queue: its channel is that of runs, once a second. */
const LEAST_PAUSE_MS = 1_000

/** Raises the events of late runs. It starts no workflow: its claim does all the work and returns no rows. */
export function lateRunsQueue({ db, log }: { db: Database; log: Logger }): Queue<never> {
  return {
    name: 'late runs',
    channel: 'agx_runs',
    leastPause: LEAST_PAUSE_MS,
    async claim(system) {
      for (const { organization_id, ids } of await listLate(system, PAGE))
        await db
          .tenant(organization_id, SYSTEM, (tx) => raiseLate(tx, ids))
          .catch((err) => log.warn({ err, organization_id }, 'the events of late runs could not be raised'))
      return []
    },
    async start() {},
  }
}
