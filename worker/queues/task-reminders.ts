import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { listDueReminders, raiseReminders } from '../../db/records/reminders.ts'
import type { Queue } from '../relay.ts'

/** Tasks of one claim, in which organizations take turns: a transaction for each of them. */
const PAGE = 500
/** A reminder is due by the clock alone, so nothing wakes the queue: its channel is that of events, once a second. */
const LEAST_PAUSE_MS = 1_000

/** Raises the reminders of tasks. It starts no workflow: its claim does all the work and returns no rows. */
export function taskRemindersQueue({ db, log }: { db: Database; log: Logger }): Queue<never> {
  return {
    name: 'task reminders',
    channel: 'agx_events',
    leastPause: LEAST_PAUSE_MS,
    async claim(system) {
      for (const { organization_id, ids } of await listDueReminders(system, PAGE))
        await db
          .tenant(organization_id, SYSTEM, (tx) => raiseReminders(tx, ids))
          .catch((err) => log.warn({ err, organization_id }, 'reminders of tasks could not be raised'))
      return []
    },
    async start() {},
  }
}
