import { setTimeout } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import type { Logger } from '../db/log.ts'
import type { Database } from '../db/postgres/connect.ts'
import { Listener } from '../db/postgres/notify.ts'
import type { Channel, System } from '../db/postgres/tenancy.ts'

/**
 * A queue of rows that are their own outbox: a row is born `queued`, and the relay alone starts its workflow. A queue
 * holds no SQL and no loop: it names the queries of `db/` and the workflow. To add one:
 * 1. in `db/<subject>/`, a claim (`queue.ts`) and the moves of its status (`moves.ts`: a line in the table, a statement);
 * 2. a file in `worker/queues/` with the four functions below, and a line in `worker/queues/index.ts`;
 * 3. where a new channel is to wake it, a line in `Channel` (`db/postgres/tenancy.ts`), and `tx.wake()` where rows are made.
 */
export interface Queue<Row> {
  name: string
  /** The channel that wakes it. Without a notification it looks once a second. */
  channel: Channel
  /**
   * Leases up to `limit` rows that have a free slot, round-robin by organization, and commits. A row that is neither
   * started nor refused can be claimed again when its lease ends.
   */
  claim(system: System, limit: number): Promise<Row[]>
  /** Starts the row's workflow. "Already started" is success. Throws what Temporal threw. */
  start(client: Client, row: Row): Promise<void>
  /** Notes that these rows were started: those that are still queued are running from now on. */
  started(system: System, rows: Row[]): Promise<unknown>
  /** Notes that Temporal will never accept this row: it fails with the reason. */
  refused(db: Database, row: Row, reason: string): Promise<unknown>
}

/** Starts of one queue that may be in flight. */
const IN_FLIGHT = 100
const POLL_MS = 1_000
/**
 * Milliseconds between the beginnings of two claims, so that rows that come in between are claimed together: at least
 * `least`, and so many that claiming takes no more than `share` of the time. The busier the queue, the larger its claims.
 */
const PACE = { least: 5, share: 1 / 5, most: 100 }
/** After an error of the database or of Temporal. */
const PAUSE_MS = 500
/** From a start to the note of it; far shorter than any lease. */
const NOTE_MS = 250

/** Runs its queues until closed: claims rows, starts them in parallel, notes the starts in batches. */
export class Relay {
  private readonly loops: QueueLoop<unknown>[]
  private readonly listener: Listener

  constructor(deps: { db: Database; client: Client; log: Logger; queues: Queue<unknown>[] }) {
    this.loops = deps.queues.map((queue) => new QueueLoop(deps, queue))
    const channels = new Set(this.loops.map((loop) => loop.queue.channel))
    this.listener = new Listener(
      deps.db.url,
      Object.fromEntries([...channels].map((channel) => [channel, () => this.wake(channel)])),
    )
  }

  async start(): Promise<void> {
    await this.listener.start()
    for (const loop of this.loops) loop.run()
  }

  /** Stops claiming; resolves when the starts in flight are noted. */
  async close(): Promise<void> {
    await this.listener.close()
    await Promise.all(this.loops.map((loop) => loop.close()))
  }

  private wake(channel: Channel): void {
    for (const loop of this.loops) if (loop.queue.channel === channel) loop.wake()
  }
}

/** The loop of one queue. */
class QueueLoop<Row> {
  readonly queue: Queue<Row>
  private readonly db: Database
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
    this.db = deps.db
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
      return await this.queue.claim(this.db.system, limit)
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
        .refused(this.db, row, reason)
        .catch((err) => this.log.error({ err }, 'a refusal was not noted'))
      return
    }
    this.toNote.push(row)
    this.noting ??= this.note()
  }

  /**
   * One statement at a time, and not at once: by then the first step of most workflows has moved its row out of `queued`,
   * and another write would only delay that step. Until the note the lease holds a row's slot.
   */
  private async note(): Promise<void> {
    while (this.toNote.length > 0) {
      await setTimeout(NOTE_MS, undefined, { signal: this.closing.signal }).catch(() => {})
      const rows = this.toNote.splice(0)
      await this.queue
        .started(this.db.system, rows)
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
