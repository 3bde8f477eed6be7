import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { cancelRun, skipRun } from '../../db/runs/moves/ends.ts'
import { listSurplus, type Surplus } from '../../db/runs/on-limit.ts'
import type { Queue } from '../relay.ts'

/** Every new run and every free slot wakes it, for the few workflows whose runs do not wait. */
const LEAST_PAUSE_MS = 200
/** Runs of one transaction. */
const PAGE = 100

/**
 * Ends the runs that the concurrency settings of their workflow do not let wait (`skip`, `cancel_running`). It starts no
 * workflow: its claim does all the work and returns no rows.
 */
export function surplusRunsQueue({ db, log }: { db: Database; log: Logger }): Queue<never> {
  return {
    name: 'surplus runs',
    channel: 'agx_runs',
    leastPause: LEAST_PAUSE_MS,
    async claim(system) {
      const surplus = await listSurplus(system)
      while (surplus.length > 0) {
        const { organization_id } = surplus[0]!
        const others = surplus.findIndex((run) => run.organization_id !== organization_id)
        const page = surplus.splice(0, Math.min(PAGE, others < 0 ? surplus.length : others))
        await db
          .tenant(organization_id, SYSTEM, async (tx) => {
            for (const run of page) {
              if (run.action === 'skip') await skipRun(tx, run.id, skipped(run))
              else await cancelRun(tx, run.id, superseded(run))
            }
          })
          .catch((err) => log.warn({ err, organization_id }, 'surplus runs could not be ended'))
      }
      return []
    },
    async start() {},
  }
}

const runs = (count: number) => (count === 1 ? 'one run' : `${count} runs`)

const skipped = ({ workflow_name, concurrency }: Surplus) =>
  `The run was skipped: ${workflow_name} allows ${runs(concurrency)} at a time, and skips others (settings.concurrency).`

const superseded = ({ workflow_name, concurrency }: Surplus) =>
  `The run was cancelled by a newer one: ${workflow_name} allows ${runs(concurrency)} at a time (settings.concurrency).`
