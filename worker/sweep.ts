import { randomUUID } from 'node:crypto'
import type { Client } from '@temporalio/client'
import type { Database } from '../db/postgres/connect.ts'
import type { Logger } from '../db/process/log.ts'
import type { Metrics } from '../db/process/metrics.ts'
import { endSweepLease, takeSweepLease } from '../db/queue/sweep-state.ts'
import { readLostAt } from '../db/queue/witness.ts'
import { StorageMeter } from '../db/storage/measure.ts'
import { bounded } from './bounded.ts'
import { sweepClosed, sweepStopped } from './sweep/closed.ts'
import { releaseHeld, sweepIdleDeliveries } from './sweep/deliveries.ts'
import type { SweepDeps } from './sweep/deps.ts'
import { sweepIdleFiles } from './sweep/files.ts'
import { InterruptedDeliveries } from './sweep/interrupted.ts'
import { type OpenRuns, sweepOpenWorkflows } from './sweep/open.ts'
import { Purger } from './sweep/purges.ts'
import { sweepQuietRuns } from './sweep/quiet.ts'
import { sweepIdleRuns, sweepLostRuns } from './sweep/runs.ts'
import { sweepSchedules } from './sweep/schedules.ts'
import { consultWitness, seemsForgetful } from './witness.ts'

const SWEEP = 'the sweep'
const EVERY_MS = 30_000
/** Soon enough for the operator who terminates or cancels a workflow, and then looks at the run. */
const GLANCE_EVERY_MS = 2_000
/** In all workers, elected or not: the elected one may be dead. */
const INTERRUPTED_EVERY_MS = 2_000
/** The time limit of one sweep; the next one continues, at once if runs after a loss remain. */
const BUDGET_MS = 25_000
/** The time after which a sweep that hangs no longer delays the next one. */
const MOST_MS = 120_000
/** The part of the budget that each stage may take. */
const STAGE_MS = 8_000
/** The budget of the runs after a loss: until they are looked up, operators find no workflow of them. */
const LOST_MS = 16_000
/**
 * The budget of the later stages while such runs remain: each sweep does a part of them, and the next one starts soon.
 */
const BEHIND_LOST_MS = 2_000
const RENEW_MS = 5_000
/** Rows without a write for this long are looked up in Temporal, the longest idle first. */
const IDLE = '20 seconds'

type SweepMetrics = Pick<Metrics, 'temporalLosses' | 'lastSweep' | 'sweepFailures'>

/**
 * Runs twice a minute in one of the workers; after a loss of Temporal again and again, until each run was looked up.
 * Records the end of workflows that ended without recording it (an operator terminated them, or they timed out), records
 * why a run is stuck, and deletes rows past their retention. No call to Temporal is made within a transaction; a stage, a
 * row or a purge that fails is logged and does not stop the others.
 */
export class Sweep {
  private readonly db: Database
  private readonly client: Client
  private readonly log: Logger
  private readonly taskQueue: string
  private readonly metrics: SweepMetrics | undefined
  private readonly lostMs: number
  private readonly relayId: string | undefined
  private readonly purger: Purger
  private readonly meter: StorageMeter
  private readonly holder = randomUUID()
  private timers: NodeJS.Timeout[] = []
  private readonly working = new Map<string, Promise<void>>()
  private closed = false
  private open: OpenRuns | undefined

  constructor(deps: {
    db: Database
    client: Client
    log: Logger
    taskQueue: string
    metrics?: SweepMetrics
    /** The relay of this process. */
    relayId?: string
    /** For tests. */
    lostMs?: number
  }) {
    this.db = deps.db
    this.taskQueue = deps.taskQueue
    this.metrics = deps.metrics
    this.lostMs = deps.lostMs ?? LOST_MS
    this.relayId = deps.relayId
    this.client = deps.client
    this.log = deps.log
    this.meter = new StorageMeter(deps.db.system)
    this.purger = new Purger({ system: deps.db.system, log: deps.log })
  }

  /** @param onLoss is called if Temporal's last loss is noticed later than `since`, by any worker. */
  start(since: Date | null, onLoss: () => void): void {
    // After a loss at once: until then operators find no workflow of the runs that wait.
    this.every(EVERY_MS, SWEEP, () => this.once(), since !== null)
    const interrupted = new InterruptedDeliveries({ db: this.db, log: this.log, relayId: this.relayId })
    this.every(INTERRUPTED_EVERY_MS, 'the look for interrupted deliveries', () => interrupted.look())
    this.every(GLANCE_EVERY_MS, 'the glance', () => this.glance())
    this.every(GLANCE_EVERY_MS, 'the look for a loss of Temporal', async () => {
      const lostAt = await readLostAt(this.db.system)
      if ((lostAt?.getTime() ?? 0) > (since?.getTime() ?? 0)) onLoss()
    })
  }

  /** Repeats `work` at an interval, one call at a time, and at once if it returns `true`: there is more to do. */
  private every(ms: number, name: string, work: () => Promise<unknown>, atOnce = false): void {
    const repeat = async () => {
      while ((await bounded(MOST_MS, name, work())) === true && !this.closed);
    }
    const perform = () => {
      if (this.working.has(name)) return
      const done = this.reported(name, repeat).finally(() => this.working.delete(name))
      this.working.set(name, done)
    }
    this.timers.push(setInterval(perform, ms))
    if (atOnce) perform()
  }

  async close(): Promise<void> {
    this.closed = true
    for (const timer of this.timers) clearInterval(timer)
    await Promise.all(this.working.values())
    await endSweepLease(this.db.system, this.holder).catch(() => {})
  }

  /**
   * Does what cannot wait for a sweep, unless another worker is elected: records the end of workflows that were just
   * terminated or cancelled, and looks for signs that Temporal has lost something.
   */
  async glance(): Promise<void> {
    const { db, client, log, taskQueue } = this
    if (!(await takeSweepLease(db.system, this.holder))) return
    // Each of them, also if another one fails, such as the list of workflows while visibility is down.
    await this.reported('stopped workflows', () => sweepStopped({ db, client, log }))
    await this.reported('signs of a loss', async () => {
      if (!this.working.has(SWEEP) && (await seemsForgetful({ system: db.system, client, log, taskQueue })))
        await this.consult()
    })
    await this.reported('quiet runs', () => sweepQuietRuns({ db, client, log }))
  }

  /**
   * Sweeps once, unless another worker is elected. `idle` is for tests. @returns whether runs remain that were not looked
   * up since a loss of Temporal.
   */
  async once(idle = IDLE): Promise<boolean> {
    if (!(await takeSweepLease(this.db.system, this.holder))) return false
    const until = Date.now() + BUDGET_MS
    let remain = false
    try {
      await this.stage('the witness', until, () => this.consult())
      await this.stage('closed workflows', until, (deps) => sweepClosed(deps, this.holder))
      await this.stage('idle runs', until, (deps) => sweepIdleRuns(deps, idle))
      await this.stage('idle deliveries', until, (deps) => sweepIdleDeliveries(deps, idle))
      await this.stage('idle files', until, (deps) => sweepIdleFiles(deps, idle))
      await this.stage('held deliveries', until, releaseHeld)
      await this.stage('schedules', until, (deps) => sweepSchedules(deps, idle))
      await this.stage('open workflows', until, async (deps) => {
        const open = await sweepOpenWorkflows(deps, idle)
        if (open) this.open = open
      })
      const lost = async (deps: SweepDeps) => {
        remain = await sweepLostRuns(deps, this.open)
      }
      await this.stage('runs after a loss', until, lost, this.lostMs)
      const measure = ({ keepOn }: SweepDeps) => this.meter.run(keepOn)
      await this.stage('the storage of organizations', until, measure, remain ? BEHIND_LOST_MS : STAGE_MS)
      await this.purger.run(this.keepOnUntil(remain ? Math.min(until, Date.now() + BEHIND_LOST_MS) : until))
      this.metrics?.lastSweep.setToCurrentTime()
      return remain
    } finally {
      await endSweepLease(this.db.system, this.holder)
    }
  }

  private async consult(): Promise<void> {
    const { db, client, log, taskQueue } = this
    if (await consultWitness({ system: db.system, client, log, taskQueue }))
      this.metrics?.temporalLosses.inc()
  }

  private async stage(
    name: string,
    until: number,
    work: (deps: SweepDeps) => Promise<void>,
    most = STAGE_MS,
  ): Promise<void> {
    const { db, client, log, taskQueue } = this
    const keepOn = this.keepOnUntil(Math.min(until, Date.now() + most))
    await this.reported(name, () => work({ db, client, log, taskQueue, keepOn }))
  }

  /** Counts and logs a failure, which does not stop what follows. */
  private async reported(stage: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.metrics?.sweepFailures.inc({ stage })
      this.log.error({ err: error, stage }, 'a stage of the sweep failed')
    }
  }

  /** Whether to continue: before `until`, not closed, and still elected. Renews the lease. */
  private keepOnUntil(until: number): () => Promise<boolean> {
    let renewed = Date.now()
    return async () => {
      if (this.closed || Date.now() >= until) return false
      if (Date.now() - renewed < RENEW_MS) return true
      renewed = Date.now()
      return takeSweepLease(this.db.system, this.holder)
    }
  }
}
