import { setTimeout as pause } from 'node:timers/promises'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { liftLimits } from '../bench/setup.ts'
import { type Accounted, account, countOpen, drained, isComplete, type Open } from '../load/account.ts'
import { acknowledgedIn, emptyLedger, forget, type Ledger } from '../load/ledger.ts'
import {
  answerRun,
  cancelRun,
  createContact,
  type Load,
  type Operation,
  receiveWebhook,
  startQuickRun,
  startRun,
} from '../load/operations.ts'
import { type Outside, startOutside } from '../load/outside.ts'
import { prepareTarget, type Target } from '../load/target.ts'
import { until } from '../support/until.ts'
import type { Fault } from './situation.ts'
import { System, type SystemOptions } from './system.ts'

/** A system under test. Its ledger grows with each fault: each account covers all requests since the start. */
export interface Subject {
  system: System
  outside: Outside
  target: Target
  db: Database
  ledger: Ledger
}

export async function startSubject(options?: SystemOptions): Promise<Subject> {
  const system = await System.start(options)
  const db = connect({ url: system.databaseUrl, poolSize: 4 })
  const outside = await startOutside()
  outside.delayCalls(CALL_MS)
  outside.failDeliveries(FAILED_DELIVERIES)
  try {
    await liftLimits(db)
    return { system, outside, db, ledger: emptyLedger(), target: await prepareTarget(system.stack, outside) }
  } catch (error) {
    await stopSubject({ system, outside, db })
    throw error
  }
}

export async function stopSubject({
  system,
  db,
  outside,
}: Pick<Subject, 'system' | 'db' | 'outside'>): Promise<void> {
  await db.close()
  await system.stop()
  await outside.close()
}

export interface Durations {
  /** The duration of the load before the fault and after it, in milliseconds. */
  beforeMs: number
  afterMs: number
}

/** The recovery of the service from a fault. Times in milliseconds from the end of the fault. */
export interface Outcome {
  fault: Fault
  accounted: Accounted
  /** Numbers of acknowledged requests and failed attempts during this fault. */
  acknowledged: number
  failures: number
  /** Time until the end of a run of one segment that was requested when the fault ended. */
  nextMs: number
  /** Time until the end of the last run, and of the last delivery, from before the fault. */
  heldRunsMs: number
  heldDeliveriesMs: number
  complete: boolean
}

const CLIENTS = 4
/** Pause between two requests of a client. */
const PAUSE_MS = 400
/**
 * Above this number of open runs clients wait: on a slow machine the load would otherwise delay runs more than the
 * fault.
 */
const MAX_OPEN_RUNS = 40
const GAUGE_MS = 500
const MIX: Operation[] = [startRun, createContact, receiveWebhook, startRun, cancelRun, answerRun]
const CALL_MS = 300
/** One of this many deliveries fails at first, so that retries are in progress. */
const FAILED_DELIVERIES = 10

/** The sweep, which checks rows that are idle for 30 s once a minute, finds what Temporal or PostgreSQL has lost. */
const DRAIN_MS = 240_000
const REQUEST_MS = 180_000
const PROGRESS_MS = 5_000

/** Runs the load, applies the fault, continues the load, waits for all work to end, and accounts for every request. */
export async function endure(
  fault: Fault,
  subject: Subject,
  { beforeMs, afterMs }: Durations,
  say: (line: string) => void = () => {},
): Promise<Outcome> {
  const { system, outside, target, db, ledger } = subject
  if (fault.second) {
    await system.startSecond()
    target.apiUrls = [system.stack.apiUrl, system.second!.apiUrl]
  }
  const before = { acknowledged: acknowledgedIn(ledger), failures: ledger.failures }
  const ending = new AbortController()
  const giveUp = new AbortController()
  const load: Load = { target, ledger, giveUp: giveUp.signal, begun: [] }
  const started = Date.now()
  const gauge = new Gauge(db)
  const { openRuns = MAX_OPEN_RUNS } = fault
  const report = (what: string) => {
    const seconds = ((Date.now() - started) / 1_000).toFixed(0).padStart(4)
    const requests = `${acknowledgedIn(ledger) - before.acknowledged} requests acknowledged, ${ledger.failures - before.failures} attempts failed`
    say(`  ${seconds} s  ${what}; ${requests}; ${gauge}`)
  }
  let phase = 'load'
  const progress = setInterval(() => report(phase), PROGRESS_MS)
  const clients = Promise.all(
    Array.from({ length: CLIENTS }, (_, n) => client(load, n, () => gauge.runs > openRuns, ending.signal)),
  )
  try {
    await pause(beforeMs)
    phase = 'fault'
    const struckAt = Date.now()
    const { restoredTo } = await fault.strike({ system, outside, load, say })
    const overAt = Date.now()
    phase = 'load after the fault'
    if (restoredTo !== undefined) forget(ledger, restoredTo, overAt)
    const next = startQuickRun(load).then((id) => untilEnded(db, id))
    report('the fault is over')
    await pause(afterMs)
    ending.abort()
    phase = 'open requests'
    const limit = setTimeout(() => giveUp.abort(), REQUEST_MS)
    await clients
    await Promise.all(load.begun)
    clearTimeout(limit)
    phase = 'open runs and deliveries'
    await drained(db, DRAIN_MS)
    report('all has ended')
    const accounted = await account({ db, ledger, outside })
    const after = (time: Date | null) => (time ? Math.max(0, time.getTime() - overAt) : 0)
    return {
      fault,
      accounted,
      acknowledged: acknowledgedIn(ledger) - before.acknowledged,
      failures: ledger.failures - before.failures,
      nextMs: after(await next),
      heldRunsMs: after(await lastEnd(db, 'runs', struckAt)),
      heldDeliveriesMs: after(await lastEnd(db, 'deliveries', struckAt)),
      complete: isComplete(accounted),
    }
  } finally {
    clearInterval(progress)
    gauge.close()
    ending.abort()
    giveUp.abort()
    await clients
    await Promise.all(load.begun)
  }
}

/** Polls the open work. */
class Gauge {
  private open: Open | undefined
  private closed = false
  private readonly db: Database

  constructor(db: Database) {
    this.db = db
    void this.measure()
  }

  /** The last known number; none while the database does not respond. */
  get runs(): number {
    return this.open?.runs ?? 0
  }

  toString(): string {
    if (!this.open) return 'the database does not answer'
    const { runs, deliveries, events } = this.open
    return `open: ${runs} runs, ${deliveries} deliveries, ${events} events`
  }

  close(): void {
    this.closed = true
  }

  private async measure(): Promise<void> {
    while (!this.closed) {
      this.open = await Promise.race([countOpen(this.db), pause(5 * GAUGE_MS, undefined)]).catch(
        () => undefined,
      )
      await pause(GAUGE_MS)
    }
  }
}

async function client(
  load: Load,
  first: number,
  isTooMuch: () => boolean,
  ending: AbortSignal,
): Promise<void> {
  for (let n = first; !ending.aborted; n++) {
    while (isTooMuch() && !ending.aborted) await pause(GAUGE_MS)
    // The ledger counts abandoned requests.
    await MIX[n % MIX.length]!(load).catch(() => {})
    await pause(PAUSE_MS)
  }
}

/** @returns the time at which the run ended. */
const untilEnded = (db: Database, id: string): Promise<Date> =>
  until(
    async () => {
      const row = await db.system('runs').where({ id }).first<{ ended_at: Date | null } | undefined>()
      return row?.ended_at ?? undefined
    },
    'the end of the next run',
    DRAIN_MS / 1_000,
  )

/** @returns the last end of rows created before `time`; null if all had ended before. */
async function lastEnd(db: Database, table: 'runs' | 'deliveries', time: number): Promise<Date | null> {
  const [row] = await db
    .system(table)
    .where('created_at', '<', new Date(time))
    .where('ended_at', '>=', new Date(time))
    .max<{ max: Date | null }[]>('ended_at')
  return row?.max ?? null
}
