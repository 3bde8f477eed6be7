import type { Channel, System } from '../../db/postgres/tenancy.ts'
import type { JobKey, MakePage, PagedJobs } from '../../db/queue/paged-jobs.ts'
import type { Queue } from '../relay.ts'

interface Options<Job extends JobKey> {
  name: string
  channel: Channel
  jobs: PagedJobs<Job>
  /** Jobs on which one worker works at the same time. */
  atOnce: number
  makePage: MakePage<Job>
}

/** A queue of jobs that a worker makes in pages. It starts no workflow: a claim is a turn. */
export const pagedJobsQueue = <Job extends JobKey>(
  { system }: { system: System },
  { name, channel, jobs, atOnce, makePage }: Options<Job>,
): Queue<Job> => ({
  name,
  channel,
  atOnce,
  claim: jobs.claim,
  start: (_client, job) => jobs.takeTurn(system, job, makePage),
})
