import type { TestDatabase } from './database.ts'
import { until } from './until.ts'

/** Waits until a statement waits for a lock. */
export const untilBlocked = (db: Pick<TestDatabase, 'asOwner'>) =>
  until(
    // Each on a connection of its own, because a transaction keeps its first snapshot of pg_stat_activity.
    () =>
      db.asOwner(async (client) => {
        const { rowCount } = await client.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        )
        return rowCount
      }),
    'a statement that waits for a lock',
  )
