import { setTimeout } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import type { Database } from '../db/postgres/connect.ts'
import { Listener } from '../db/postgres/notify.ts'
import type { Channel, System } from '../db/postgres/tenancy.ts'
import type { Logger } from '../db/process/log.ts'
import { bounded } from './bounded.ts'

/**
 * A queue of rows that are their own outbox: a row is inserted as `queued`, and only the relay starts its workflow. A
 * queue contains no SQL and no loop: it names the queries of `db/` and the workflow. To add a queue:
 * 1. in `db/<subject>/`, add a claim (`queue.ts`) and the status changes (`moves/`: a line in the table, a statement);
 * 2. add a file in `worker/queues/` with the functions below, and list it in `worker/queues/index.ts`;
 * 3. for a new channel, extend `Channel` (`db/postgres/tenancy.ts`) and call `tx.wake()` where rows are inserted.
 */
export interface Queue<Row> {
  name: string
  /** The notification channel. The queue is also polled once a second. */
  channel: Channel
  /** Milliseconds between the starts of two claims at least, for a queue that others wake often. */
  leastPause?: number
  /** Rows in work at once, for a queue whose rows are long work; default: `MAX_IN_FLIGHT`. Read before each claim. */
  atOnce?: number
  /**
   * Claims up to `limit` rows that have a free slot, round-robin by organization, and commits. A row that is neither
   * started nor refused can be claimed again when its lease expires, or when its relay is dead. A claim that does all
   * the work itself returns no rows.
   */
  claim(system: System, limit: number): Promise<Row[]>
  /** Starts the row's workflow. "Already started" counts as success. Throws Temporal's errors. */
  start(client: Client, row: Row): Promise<unknown>
  /** Records that these rows were started: `queued` becomes `running`. Absent if the start has done so. */
  started?(system: System, rows: Row[]): Promise<unknown>
  /** Records that Temporal rejected this row permanently: it fails with the reason. Absent if nothing is started. */
  refused?(db: Database, row: Row, reason: string): Promise<unknown>
  /** Lets rows be claimed again whose start has failed. Without it they wait for the end of their lease. */
  failed?(system: System, rows: Row[]): Promise<unknown>
  /** Reports once a second that this relay is alive; `rows` are the claimed ones whose start is not recorded yet. */
  beat?(system: System, rows: Row[]): Promise<unknown>
  /** Ends the claims of this relay. */
  leave?(system: System): Promise<unknown>
}

/** Limit of concurrent starts per queue: over 1,000 a second where a start takes 20 ms, and few for a slow Temporal. */
export const MAX_IN_FLIGHT = 32
const POLL_MS = 1_000
/**
 * Minimum interval in milliseconds between the starts of two claims, so that rows are claimed in batches: between `min`
 * and `max`, and long enough that claiming takes at most `share` of the time. A busy queue claims larger batches.
 */
const PACE = { min: 5, share: 1 / 5, max: 100 }
/**
 * The minimum while starts are in flight: 50 clients caused a claim per run without it. A run that comes alone does not
 * wait.
 */
const BUSY_PACE_MS = 20
/** After a failed claim. */
const PAUSE_MS = 500
/** Delay from a start until it is recorded; far shorter than any lease. */
const RECORD_DELAY_MS = 250
const BEAT_MS = 1_000
/**
 * Time limit of a start. A call to Temporal ends by itself after 30 s, and a mail's attempts end sooner; a start that
 * never ended would occupy its slot for ever.
 */
const START_MS = 120_000

interface RelayDeps {
  db: Database
  client: Client
  log: Logger
  /** Milliseconds from a claim to the next where nothing wakes the queue. Default: a second. */
  pollMs?: number | undefined
}

/** Runs its queues until closed: claims rows, starts them in parallel, records the starts in batches. */
export class Relay {
  private readonly loops: QueueLoop<unknown>[]
  private readonly listener: Listener

  constructor(deps: RelayDeps & { queues: Queue<unknown>[] }) {
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

  /** Stops claiming; resolves when the starts in flight are recorded. */
  async close(): Promise<void> {
    // Together: a PostgreSQL that hangs answers neither, and the loops must claim no more.
    await Promise.all([this.listener.close(), ...this.loops.map((loop) => loop.close())])
  }

  private wake(channel: Channel): void {
    for (const loop of this.loops) if (loop.queue.channel === channel) loop.wake()
  }
}

class QueueLoop<Row> {
  readonly queue: Queue<Row>
  private readonly db: Database
  private readonly client: Client
  private readonly log: Logger
  private readonly pollMs: number
  private readonly starting = new Set<Promise<void>>()
  /** The claimed rows whose start is not recorded yet. */
  private readonly claimed = new Set<Row>()
  private readonly unrecorded: Row[] = []
  private recording: Promise<void> | undefined
  private readonly closing = new AbortController()
  /** It waits for the end of a start. */
  private isFull = false
  private woken = false
  private closed = false
  private endSleep = () => {}
  private loop: Promise<void> | undefined
  private beating: Promise<void> | undefined

  constructor(deps: RelayDeps, queue: Queue<Row>) {
    this.queue = queue
    this.db = deps.db
    this.client = deps.client
    this.log = deps.log.child({ queue: queue.name })
    this.pollMs = deps.pollMs ?? POLL_MS
  }

  private get atOnce(): number {
    return this.queue.atOnce ?? MAX_IN_FLIGHT
  }

  run(): void {
    this.loop = this.work()
    this.beating = this.beat()
  }

  wake(): void {
    this.woken = true
    this.endSleep()
  }

  async close(): Promise<void> {
    this.closed = true
    this.endSleep()
    await this.loop
    await Promise.all(this.starting)
    this.closing.abort()
    await Promise.all([this.recording, this.beating])
    await this.queue
      .leave?.(this.db.system)
      .catch((err) => this.log.error({ err }, 'the relay could not leave'))
  }

  private async work(): Promise<void> {
    while (!this.closed) {
      this.woken = false
      const claimedAt = performance.now()
      const limit = this.atOnce - this.starting.size
      this.isFull = limit <= 0
      const rows = limit > 0 ? await this.claim(limit) : []
      const claimMs = performance.now() - claimedAt
      for (const row of rows) {
        this.claimed.add(row)
        const start = this.start(row).finally(() => {
          this.starting.delete(start)
          if (this.isFull && this.starting.size < this.atOnce) this.wake()
        })
        this.starting.add(start)
      }
      if (rows.length === limit && limit > 0) continue
      await this.sleep(this.pollMs)
      const least = this.starting.size > 0 ? BUSY_PACE_MS : PACE.min
      const pace = Math.max(
        Math.min(Math.max(least, claimMs / PACE.share), PACE.max),
        this.queue.leastPause ?? 0,
      )
      const remaining = pace - (performance.now() - claimedAt)
      if (remaining > 0) await setTimeout(remaining)
    }
  }

  private async claim(limit: number): Promise<Row[]> {
    try {
      return await this.queue.claim(this.db.system, limit)
    } catch (error) {
      this.log.error({ err: error }, 'claiming rows failed')
      await this.pause()
      return []
    }
  }

  private async start(row: Row): Promise<void> {
    try {
      await bounded(START_MS, 'the start', this.queue.start(this.client, row))
    } catch (error) {
      const reason = refusal(error)
      if (reason === undefined) {
        this.log.warn({ err: error, ...idsOf(row) }, 'starting a workflow failed; it will be retried')
        await this.queue.failed?.(this.db.system, [row]).catch(() => {})
        this.claimed.delete(row)
        return
      }
      this.log.error({ reason, ...idsOf(row) }, 'Temporal rejected a start')
      await this.queue
        .refused?.(this.db, row, reason)
        .catch((err) => this.log.error({ err }, 'a rejected start was not recorded'))
      this.claimed.delete(row)
      return
    }
    this.unrecorded.push(row)
    this.recording ??= this.recordStarts()
  }

  /**
   * One statement at a time, after a delay: by then the first step of most workflows has moved its row out of `queued`,
   * and an earlier write would only slow that step down. Until the write the lease occupies the row's slot.
   */
  private async recordStarts(): Promise<void> {
    while (this.unrecorded.length > 0) {
      await setTimeout(RECORD_DELAY_MS, undefined, { signal: this.closing.signal }).catch(() => {})
      const rows = this.unrecorded.splice(0)
      await this.queue
        .started?.(this.db.system, rows)
        .catch((error) =>
          this.log.error({ err: error }, 'started rows were not recorded; they will be started again'),
        )
      for (const row of rows) this.claimed.delete(row)
    }
    this.recording = undefined
  }

  private async beat(): Promise<void> {
    const { signal } = this.closing
    while (this.queue.beat && !signal.aborted) {
      await this.queue
        .beat(this.db.system, [...this.claimed])
        .catch((err) => this.log.error({ err }, 'the heartbeat of the relay failed'))
      await setTimeout(BEAT_MS, undefined, { signal }).catch(() => {})
    }
  }

  private sleep(milliseconds: number): Promise<void> {
    if (this.woken || this.closed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = globalThis.setTimeout(resolve, milliseconds)
      this.endSleep = () => {
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

/** Temporal rejected a start permanently; `message` is its reason. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

/** Temporal's reason for rejecting a start permanently; undefined for transient errors. */
export function refusal(error: unknown): string | undefined {
  if (error instanceof Refused) return error.message
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ((cause as { code?: unknown }).code === INVALID_ARGUMENT) {
      const { details } = cause as { details?: unknown }
      return typeof details === 'string' && details ? details : cause.message
    }
  }
  return undefined
}

/** The ids of a claimed row, for the log: `row_id` is its own in the queue. */
function idsOf(row: unknown): Record<string, unknown> {
  const { organization_id, run_id, id } = row as Record<'organization_id' | 'run_id' | 'id', unknown>
  return { organization_id, run_id, row_id: id }
}
