import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { admitRuns } from '../../db/runs/holds/admit.ts'
import { listDue, postponeFirst } from '../../db/runs/holds/held.ts'
import { NOWHERE, wakeMissed } from '../../db/runs/holds/missed-keys.ts'
import type { Queue } from '../relay.ts'

/** Every new run and every free slot wakes it; few are of workflows that hold runs back. */
const LEAST_PAUSE_MS = 50
/** Organizations of a round, and runs of one transaction. */
const ORGANIZATIONS = 50
const PAGE = 100
/** Rounds of one claim, in each of which every organization has a turn. */
const ROUNDS = 20
/** Keys that are looked at again, once a second. */
const KEYS = 200
const KEYS_MS = 1_000

/**
 * Decides about runs that keys of their settings hold back. It starts no workflow: its claim does all the work and
 * returns no rows.
 */
export function heldRunsQueue({ db, log }: { db: Database; log: Logger }): Queue<never> {
  let places = NOWHERE
  let looked = 0

  /** A run that cannot be decided must keep neither the others of its organization waiting, nor other organizations. */
  async function admit(organization: string): Promise<boolean> {
    const page = (limit: number) => db.tenant(organization, SYSTEM, (tx) => admitRuns(tx, limit))
    const failed = (err: unknown) =>
      log.warn({ err, organization_id: organization }, 'held runs could not be admitted')
    try {
      return await page(PAGE)
    } catch (err) {
      failed(err)
    }
    try {
      return await page(1)
    } catch (err) {
      failed(err)
      await db.tenant(organization, SYSTEM, postponeFirst).catch(failed)
      return false
    }
  }

  return {
    name: 'held runs',
    channel: 'agx_runs',
    leastPause: LEAST_PAUSE_MS,
    async claim(system) {
      if (performance.now() - looked > KEYS_MS) {
        looked = performance.now()
        places = await wakeMissed(system, places, KEYS)
      }
      for (let round = 0; round < ROUNDS; round++) {
        let more = false
        for (const organization of await listDue(system, ORGANIZATIONS)) {
          if (await admit(organization)) more = true
        }
        if (!more) break
      }
      return []
    },
    async start() {},
  }
}
