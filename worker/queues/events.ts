import { MATCHED_AT_ONCE, matchEvents } from '../../db/events/match.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { QueuedRuns } from '../../db/runs/queued-runs.ts'
import type { Queue } from '../relay.ts'

/** The smallest batch after one that took too long. */
const LEAST = 20

/**
 * Turns the events of the outbox into deliveries, and into runs of the workflows that they trigger. It starts no
 * workflow: its claim does all the work and returns no rows.
 */
export function eventsQueue({
  db,
  log,
  onSkipped = () => {},
}: {
  db: Pick<Database, 'reportEnds'>
  log: Logger
  /** Counts a run that was skipped, by the code of its error. */
  onSkipped?: ((code: string) => void) | undefined
}): Queue<never> {
  const queued = new QueuedRuns()
  return {
    name: 'events',
    channel: 'agx_events',
    async claim(system) {
      for (let limit = MATCHED_AT_ONCE; ; ) {
        const { events, more, cut, problems, skipped, ended } = await matchEvents(system, limit, queued)
        for (const code of skipped) onSkipped(code)
        db.reportEnds(ended)
        for (const { organization_id, workflow_id, event_id, count, message } of problems)
          log.warn(
            { organization_id, workflow_id, event_id, count, reason: message },
            'a trigger could not start a run',
          )
        if (!more) return []
        limit = cut ? Math.max(events, LEAST) : MATCHED_AT_ONCE
      }
    },
    async start() {},
  }
}
