import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

const INTERVAL_MS = 500
const RESPONSE_MS = 3_000
/** For responses that have arrived but were not read, because this process itself was busy. */
const OWN_DELAY_MS = 200

/**
 * Detects a PostgreSQL that hangs: frozen, or behind a network that drops packets. Its connections stay open, so
 * statements on them would wait for ever; `statement_timeout` does not help, for the server itself would have to end
 * them. While statements run, a connection of its own is probed; where no response comes in time, all connections are
 * destroyed, which fails their statements, and `hangs` is true until a probe succeeds. A statement that is only slow is
 * not affected.
 */
export class Watchdog {
  private readonly url: string
  private readonly connections: ReadonlySet<pg.Client>
  private readonly isBusy: () => boolean
  private readonly timer: NodeJS.Timeout
  private client: pg.Client | undefined
  private probing = false
  /** The last probe had no response in time. */
  hangs = false

  /** `connections` are destroyed when a probe has had no response for 3 s; probes are sent while `isBusy`. */
  constructor(options: {
    url: string
    connections: ReadonlySet<pg.Client>
    isBusy: () => boolean
  }) {
    this.url = options.url
    this.connections = options.connections
    this.isBusy = options.isBusy
    this.timer = setInterval(() => void this.look(), INTERVAL_MS).unref()
  }

  async close(): Promise<void> {
    clearInterval(this.timer)
    await this.client?.end().catch(() => {})
  }

  private async look(): Promise<void> {
    if (this.probing || !(this.isBusy() || this.hangs)) return
    this.probing = true
    const timeout = new AbortController()
    const late = pause(RESPONSE_MS, undefined, { signal: timeout.signal })
      .then(() => pause(OWN_DELAY_MS, 'hangs' as const, { signal: timeout.signal }))
      .catch(() => 'responds' as const)
    const outcome = await Promise.race([this.probe(), late])
    timeout.abort()
    this.hangs = outcome === 'hangs'
    if (this.hangs) {
      this.drop()
      for (const connection of this.connections) destroy(connection)
    }
    this.probing = false
  }

  /** An error is a response too: what it means for a statement, the statement's own connection finds out. */
  private async probe(): Promise<'responds'> {
    try {
      if (!this.client) {
        this.client = new pg.Client({ connectionString: this.url, application_name: 'agx watchdog' })
        this.client.on('error', () => this.drop())
        await this.client.connect()
      }
      await this.client.query('select 1')
    } catch {
      this.drop()
    }
    return 'responds'
  }

  private drop(): void {
    if (this.client) destroy(this.client)
    this.client = undefined
  }
}

/** Ends a connection without waiting for the server. Its statements fail. */
function destroy(client: pg.Client): void {
  // Not in the types of pg.
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  stream.destroy()
}
