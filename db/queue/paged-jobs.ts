import type { System } from '../postgres/tenancy.ts'
import { defineQueue } from './queue.ts'

/**
 * Jobs that are too long for one transaction: replays, batches of runs, and cancellations by an event. A worker leases a
 * job, makes pages of it until its turn is over, and releases it; the next claim, by any worker, goes on. Other jobs have
 * their turns between, and a worker can stop. A page locks its job, and stores the progress in the same transaction as
 * its effects: it is made once, even if a worker dies or its lease ends too early.
 */
export interface JobKey {
  organization_id: string
  id: string
}

/** Makes the next page. `keepOn`: whether the turn goes on. @returns whether there may be another page now. */
export type MakePage<Job> = (job: Job, keepOn: () => boolean) => Promise<boolean>

export type PagedJobs<Job extends JobKey> = ReturnType<typeof definePagedJobs<Job>>

const TURN_MS = 2_500
/** Longer than a turn and the page with which it ends. */
const LEASE_SECONDS = 15

/** Makes pages until a turn is over, or none is left. */
export async function takeTurn(makePage: (keepOn: () => boolean) => Promise<boolean>): Promise<void> {
  const until = Date.now() + TURN_MS
  const keepOn = () => Date.now() < until
  while (keepOn() && (await makePage(keepOn)));
}

/**
 * The jobs of a table that `waits` for a turn (SQL, as in `defineQueue`), by default the oldest first; jobs that wait
 * again once they are done need an `order` in which all come first at some time. Organizations take turns, and each has
 * `slots` jobs in work at once: by the order alone, jobs that take hours would keep all places.
 */
export function definePagedJobs<Job extends JobKey>(
  table: string,
  waits: string,
  slots: number,
  returning: readonly string[] = [],
  order = 'created_at, id',
) {
  const jobs = defineQueue<Job>({
    table,
    key: ['organization_id', 'id'],
    waits,
    order,
    returning,
    seconds: LEASE_SECONDS,
    turns: { slots },
  })
  return {
    claim: jobs.claim,
    /** Makes pages for a turn, and releases the job, also if a page fails. */
    async takeTurn(system: System, job: Job, makePage: MakePage<Job>): Promise<void> {
      try {
        await takeTurn((keepOn) => makePage(job, keepOn))
      } finally {
        await jobs.release(system, [job])
      }
    },
  }
}
