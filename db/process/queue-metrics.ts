import { setTimeout as pause } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'
import type { Database } from '../postgres/connect.ts'
import { countLateRuns, countStuckRuns, listJobs, listQueues } from '../queue/depth.ts'
import { countPoolWorkers } from '../queue/pool-workers.ts'

/** The metrics that are read from PostgreSQL or Temporal, for all processes together. */

/** Lifetime of the cached figures that are read from PostgreSQL, so that frequent scrapes do not query more often. */
const QUEUES_CACHED_MS = 10_000

/** What is read from PostgreSQL or Temporal is the same on every worker. */
const GLOBAL = 'Covers all processes; each worker reports it: use max, not sum.'

/** A PostgreSQL that hangs must not hold up the scrape of the other figures. */
const READ_MS = 3_000

/** The queues, the long jobs, and the runs that are stuck or late. */
export function registerQueues(db: Database, registers: Registry[]): void {
  const rows = cached(() => listQueues(db.system))
  new Gauge({
    name: 'agx_queue_rows',
    help: `Rows of each measured queue, by status; counted up to 100,000. ${GLOBAL}`,
    registers,
    labelNames: ['queue', 'status'],
    async collect() {
      this.reset()
      for (const { queue, status, count } of (await rows()) ?? []) this.set({ queue, status }, count)
    },
  })
  new Gauge({
    name: 'agx_queues_readable',
    help: `1 if PostgreSQL told the figures of the queues, 0 if they are missing.`,
    registers,
    async collect() {
      this.set((await rows()) ? 1 : 0)
    },
  })
  new Gauge({
    name: 'agx_queue_lag_seconds',
    registers,
    help: `How long the oldest queued row waits that no relay has claimed, 0 without one; it may wait for a free slot. ${GLOBAL}`,
    labelNames: ['queue'],
    async collect() {
      this.reset()
      for (const { queue, status, lag_seconds } of (await rows()) ?? [])
        if (status === 'queued') this.set({ queue }, lag_seconds ?? 0)
    },
  })
  const jobs = cached(() => listJobs(db.system))
  new Gauge({
    name: 'agx_jobs_open',
    help: `Long jobs that have not ended, by sort; counted up to 100,000. ${GLOBAL}`,
    registers,
    labelNames: ['queue'],
    async collect() {
      this.reset()
      for (const { queue, count } of (await jobs()) ?? []) this.set({ queue }, count)
    },
  })
  new Gauge({
    name: 'agx_jobs_oldest_seconds',
    help: `Time since the oldest long job was created that has not ended, 0 without one. ${GLOBAL}`,
    registers,
    labelNames: ['queue'],
    async collect() {
      this.reset()
      for (const { queue, oldest_seconds } of (await jobs()) ?? []) this.set({ queue }, oldest_seconds ?? 0)
    },
  })
  registerCount('agx_runs_stuck', 'Open runs with a stuck_reason', () => countStuckRuns(db.system), registers)
  const late = 'Open runs that are late by the expected_within of their workflow'
  registerCount('agx_runs_late', late, () => countLateRuns(db.system), registers)
}

/** `read` counts rows of all organizations, up to a bound. */
function registerCount(name: string, what: string, read: () => Promise<number>, registers: Registry[]): void {
  const counted = cached(read)
  new Gauge({
    name,
    help: `${what}; counted up to 100,000. ${GLOBAL}`,
    registers,
    async collect() {
      const count = await counted()
      // `reset` would make it 0.
      if (count === undefined) this.remove()
      else this.set(count)
    },
  })
}

/** The pools of workers. `backlogOf`: the number of calls that wait for a worker of a pool, if it is known. */
export function registerPools(
  db: Database,
  backlogOf: (pool: string) => Promise<number | undefined>,
  registers: Registry[],
): void {
  const pools = cached(() => countPoolWorkers(db.system))
  const backlogs = cached(async () => {
    const known = (await pools()) ?? []
    return Promise.all(
      known.map(async ({ pool }) => ({ pool, waiting: await backlogOf(pool).catch(() => undefined) })),
    )
  })
  new Gauge({
    name: 'agx_pool_workers',
    help: `Live workers of each pool. ${GLOBAL}`,
    registers,
    labelNames: ['pool'],
    async collect() {
      this.reset()
      for (const { pool, workers } of (await pools()) ?? []) this.set({ pool }, workers)
    },
  })
  new Gauge({
    name: 'agx_pool_backlog',
    help: `Calls that wait for a worker of the pool, as Temporal estimates them. ${GLOBAL}`,
    registers,
    labelNames: ['pool'],
    async collect() {
      this.reset()
      for (const { pool, waiting } of (await backlogs()) ?? [])
        if (waiting !== undefined) this.set({ pool }, waiting)
    },
  })
}

/** Reads at most every `QUEUES_CACHED_MS`; undefined where it fails. */
function cached<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let last: { at: number; value: Promise<T | undefined> } | undefined
  return () => {
    if (!last || Date.now() - last.at > QUEUES_CACHED_MS)
      last = {
        at: Date.now(),
        value: Promise.race([read(), pause(READ_MS, undefined, { ref: false })]).catch(() => undefined),
      }
    return last.value
  }
}
