import type { Knex } from 'knex'
import pg from 'pg'
import type { Channel, System } from './tenancy.ts'

/** Time limit for the listener's connection, in milliseconds. */
const CONNECT_MS = 10_000

/** PostgreSQL refuses payloads of 8,000 bytes and more. */
const MAX_PAYLOAD = 7_000

/** Sends one NOTIFY without a payload, as a separate statement. */
export async function notify(system: System, channel: Channel): Promise<void> {
  await system.raw("select pg_notify(?, '')", [channel])
}

/**
 * Sends NOTIFY for a whole process, as statements of their own: NOTIFY takes a lock on the whole database until its
 * transaction ends, so it follows the commit of what it tells. One statement at a time; requests in the meantime are
 * coalesced into the next one.
 * Payloads of a channel are joined with commas. A lost notification costs one polling interval, so errors are ignored.
 */
export class Notifier {
  private waiting = new Map<Channel, Set<string>>()
  private sending: Promise<void> | undefined
  private readonly db: Knex

  constructor(db: Knex) {
    this.db = db
  }

  send(channel: Channel, payload = ''): void {
    const payloads = this.waiting.get(channel) ?? new Set()
    this.waiting.set(channel, payloads.add(payload))
    this.sending ??= this.drain()
  }

  async close(): Promise<void> {
    await this.sending
  }

  private async drain(): Promise<void> {
    await Promise.resolve()
    while (this.waiting.size > 0) {
      const batch = this.waiting
      this.waiting = new Map()
      const messages = [...batch].flatMap(([channel, payloads]) =>
        chunk([...payloads].filter(Boolean)).map((payload) => ({ channel, payload })),
      )
      await this.db.raw(NOTIFY, [JSON.stringify(messages)]).catch(() => {})
    }
    this.sending = undefined
  }
}

const NOTIFY =
  'select pg_notify(m.channel, m.payload) from jsonb_to_recordset(?) as m(channel text, payload text)'

function chunk(payloads: string[]): string[] {
  const chunks = ['']
  for (const payload of payloads) {
    const last = chunks.length - 1
    const joined = chunks[last] ? `${chunks[last]},${payload}` : payload
    if (joined.length > MAX_PAYLOAD) chunks.push(payload)
    else chunks[last] = joined
  }
  return chunks
}

/**
 * Listens on its own connection, reconnecting with backoff. After each (re)connect every handler is called without
 * payloads, because notifications may have been lost.
 */
export class Listener {
  private client: pg.Client | undefined
  private closed = false
  private readonly url: string
  private readonly handlers: Map<Channel, (payloads: string[]) => void>

  constructor(url: string, handlers: Partial<Record<Channel, (payloads: string[]) => void>>) {
    this.url = url
    this.handlers = new Map(Object.entries(handlers) as [Channel, (payloads: string[]) => void][])
  }

  /** Resolves when the first connection listens or has failed (it is then retried in the background). */
  async start(delay = 100): Promise<void> {
    if (this.closed) return
    const client = new pg.Client({
      connectionString: this.url,
      application_name: 'agx listener',
      connectionTimeoutMillis: CONNECT_MS,
      // It sends nothing: without it, it would not notice that a network drops its packets.
      keepAlive: true,
      keepAliveInitialDelayMillis: CONNECT_MS,
    })
    let lost = false
    const retry = () => {
      if (lost) return
      lost = true
      client.end().catch(() => {})
      if (!this.closed) setTimeout(() => void this.start(Math.min(delay * 2, 5_000)), delay).unref()
    }
    client.on('error', retry)
    client.on('end', retry)
    client.on('notification', ({ channel, payload }) =>
      this.handlers.get(channel as Channel)?.((payload ?? '').split(',').filter(Boolean)),
    )
    try {
      await client.connect()
      this.client = client
      for (const channel of this.handlers.keys()) await client.query(`listen ${channel}`)
      for (const handler of this.handlers.values()) handler([])
    } catch {
      retry()
    }
  }

  async close(): Promise<void> {
    this.closed = true
    await this.client?.end().catch(() => {})
  }
}
