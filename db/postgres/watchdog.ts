import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

const INTERVAL_MS = 500
const RESPONSE_MS = 3_000
/** For responses that have arrived but were not read, because this process itself was busy. */
const OWN_DELAY_MS = 200
/** SQLSTATE. */
const CONNECTION_FAILURE = '08006'

/**
 * Detects a PostgreSQL that hangs: frozen, or behind a network that drops packets. Its connections stay open, so
 * statements on them would wait for ever; `statement_timeout` does not help, for the server itself would have to end
 * them. While statements run, a connection of its own is probed; where no response comes in time, the sockets of all
 * connections are destroyed, which fails their statements, and new connections fail at once until a probe succeeds. A
 * statement that is only slow is not affected, as it would be by pg's `query_timeout`.
 * Gain (test/api/database-hangs.test.ts): requests are answered 503 within 6 s, instead of waiting while it hangs.
 */
export class Watchdog {
  private readonly url: string
  private readonly isBusy: () => boolean
  private readonly timer: NodeJS.Timeout
  private readonly sockets = new Set<Socket>()
  private client: pg.Client | undefined
  private probing = false
  /** The last probe had no response in time. */
  private hangs = false

  /** Probes are sent while `isBusy`. */
  constructor(url: string, isBusy: () => boolean) {
    this.url = url
    this.isBusy = isBusy
    this.timer = setInterval(() => void this.look(), INTERVAL_MS).unref()
  }

  /** The option `stream` of pg: the socket of a new connection. Throws while PostgreSQL hangs. */
  readonly stream = (): Socket => {
    if (this.hangs)
      throw Object.assign(new Error('PostgreSQL does not respond'), { code: CONNECTION_FAILURE })
    return this.open()
  }

  private open(): Socket {
    const socket = new Socket()
    this.sockets.add(socket)
    socket.once('close', () => this.sockets.delete(socket))
    return socket
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
    if (this.hangs) for (const socket of this.sockets) socket.destroy()
    this.probing = false
  }

  /** An error is a response too: what it means for a statement, the statement's own connection finds out. */
  private async probe(): Promise<'responds'> {
    try {
      this.client ??= await this.connect()
      await this.client.query('select 1')
    } catch {
      this.client?.end().catch(() => {})
      this.client = undefined
    }
    return 'responds'
  }

  private async connect(): Promise<pg.Client> {
    const stream = () => this.open()
    const client = new pg.Client({ connectionString: this.url, application_name: 'agx watchdog', stream })
    // The next probe notices.
    client.on('error', () => {})
    return client.connect()
  }
}
