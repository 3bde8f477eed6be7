import { setTimeout } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import type { Knex } from 'knex'
import type { Logger } from '../db/log.ts'
import type { Database } from '../db/postgres/connect.ts'
import { Listener } from '../db/postgres/notify.ts'
import type { Channel } from '../db/postgres/tenancy.ts'

/**
 * Rows that are their own outbox: born queued, started by the relay and by nobody else. `db` sees all organizations.
 * To add one: a file in `worker/queues/` and a line in its `index.ts`.
 */
export interface Queue<Row> {
  name: string
  /** What wakes it; once a second it looks without being woken. */
  channel: Channel
  /**
   * Leases up to `limit` rows that have a free slot, round-robin by organization. Commits before it returns. A row
   * that is neither started nor refused comes back when its lease ends.
   */
  claim(db: Knex, limit: number): Promise<Row[]>
  /** Starts the row's workflow. "Already started" is success. Throws what Temporal threw. */
  start(client: Client, row: Row): Promise<void>
  /** Compare-and-set: rows that are still queued are running from now on. */
  started(db: Knex, rows: Row[]): Promise<void>
  /** Temporal will never take this row: it fails with the reason. */
  refused(db: Database, row: Row, reason: string): Promise<void>
}

/** How many starts of one queue may be under way. */
const IN_FLIGHT = 100
const POLL_MS = 1_000
/**
 * Between the beginnings of two looks, so that what comes in meanwhile is claimed together: `least`, but so long that
 * looking takes no more than a share of the time. What waits is then taken in ever larger lots the busier it gets.
 */
const PACE = { least: 5, share: 1 / 5, most: 100 }
/** After an error of the database or of Temporal. */
const PAUSE_MS = 500
/** Between a start and noting it; far shorter than any lease. */
const NOTE_MS = 250

/** Runs its queues until closed: claim, start in parallel, note what was started in batches. */
export class Relay {
  private readonly lanes: Lane<unknown>[]
  private readonly listener: Listener

  constructor(deps: { db: Database; client: Client; log: Logger; queues: Queue<unknown>[] }) {
    this.lanes = deps.queues.map((queue) => new Lane(deps, queue))
    const channels = new Set(this.lanes.map((lane) => lane.queue.channel))
    this.listener = new Listener(
      deps.db.url,
      Object.fromEntries([...channels].map((channel) => [channel, () => this.wake(channel)])),
    )
  }

  async start(): Promise<void> {
    await this.listener.start()
    for (const lane of this.lanes) lane.run()
  }

  /** Claims nothing more; resolves when the starts under way are noted. */
  async close(): Promise<void> {
    await this.listener.close()
    await Promise.all(this.lanes.map((lane) => lane.close()))
  }

  private wake(channel: Channel): void {
    for (const lane of this.lanes) if (lane.queue.channel === channel) lane.wake()
  }
}

/** One queue at work. */
class Lane<Row> {
  readonly queue: Queue<Row>
  private readonly database: Database
  private readonly db: Knex
  private readonly client: Client
  private readonly log: Logger
  private readonly starting = new Set<Promise<void>>()
  private readonly toNote: Row[] = []
  private noting: Promise<void> | undefined
  private readonly closing = new AbortController()
  private woken = false
  private closed = false
  private rouse = () => {}
  private loop: Promise<void> | undefined

  constructor(deps: { db: Database; client: Client; log: Logger }, queue: Queue<Row>) {
    this.queue = queue
    this.database = deps.db
    this.db = deps.db.system
    this.client = deps.client
    this.log = deps.log.child({ queue: queue.name })
  }

  run(): void {
    this.loop = this.work()
  }

  wake(): void {
    this.woken = true
    this.rouse()
  }

  async close(): Promise<void> {
    this.closed = true
    this.rouse()
    await this.loop
    await Promise.all(this.starting)
    this.closing.abort()
    await this.noting
  }

  private async work(): Promise<void> {
    while (!this.closed) {
      this.woken = false
      const looked = performance.now()
      const limit = IN_FLIGHT - this.starting.size
      const rows = limit > 0 ? await this.claim(limit) : []
      const pace = Math.min(Math.max(PACE.least, (performance.now() - looked) / PACE.share), PACE.most)
      for (const row of rows) {
        const start = this.start(row).finally(() => {
          this.starting.delete(start)
          if (this.starting.size === IN_FLIGHT - 1) this.wake()
        })
        this.starting.add(start)
      }
      if (rows.length === limit && limit > 0) continue
      await this.sleep(POLL_MS)
      const early = pace - (performance.now() - looked)
      if (early > 0) await setTimeout(early)
    }
  }

  private async claim(limit: number): Promise<Row[]> {
    try {
      return await this.queue.claim(this.db, limit)
    } catch (error) {
      this.log.error({ err: error }, 'the relay could not claim')
      await this.pause()
      return []
    }
  }

  private async start(row: Row): Promise<void> {
    try {
      await this.queue.start(this.client, row)
    } catch (error) {
      const reason = refusal(error)
      if (reason === undefined) {
        this.log.warn({ err: error }, 'a start failed; it is tried again when its lease ends')
        return
      }
      this.log.error({ reason }, 'Temporal refused a start')
      await this.queue
        .refused(this.database, row, reason)
        .catch((err) => this.log.error({ err }, 'a refusal was not noted'))
      return
    }
    this.toNote.push(row)
    this.noting ??= this.note()
  }

  /**
   * One statement at a time, and not at once: most rows have left `queued` by their workflow's own first step then,
   * and writing to them again would only hold that step up. Until it is noted the lease keeps a row's slot.
   */
  private async note(): Promise<void> {
    while (this.toNote.length > 0) {
      await setTimeout(NOTE_MS, undefined, { signal: this.closing.signal }).catch(() => {})
      const rows = this.toNote.splice(0)
      await this.queue
        .started(this.db, rows)
        .catch((error) => this.log.error({ err: error }, 'started rows were not noted; their lease will end'))
    }
    this.noting = undefined
  }

  private sleep(milliseconds: number): Promise<void> {
    if (this.woken || this.closed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = globalThis.setTimeout(resolve, milliseconds)
      this.rouse = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  private pause(): Promise<void> {
    return setTimeout(PAUSE_MS)
  }
}

const INVALID_ARGUMENT = 3

/** Why Temporal will never accept a start; undefined for errors that may pass. */
export function refusal(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ((cause as { code?: unknown }).code === INVALID_ARGUMENT) {
      const { details } = cause as { details?: unknown }
      return typeof details === 'string' && details ? details : cause.message
    }
  }
  return undefined
}
