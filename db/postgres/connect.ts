import { setTimeout as pause } from 'node:timers/promises'
import knex, { type Knex } from 'knex'
import pg from 'pg'
import { Dialect } from './dialect.ts'
import { Notifier } from './notify.ts'
import { sqlState } from './sql-state.ts'
import { type Actor, type System, type Tenant, Wakes } from './tenancy.ts'
import { transaction } from './transaction.ts'

// bigint (counts, sizes) fits a double here; numeric stays text, because a float would lose digits of money.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text)

/**
 * One process's access to PostgreSQL: two pools, one for each role, and the notifier.
 * - `tenant()` is the default: a transaction in which row-level security shows one organization. It retries on
 *   deadlock (40P01), so `work` can run more than once.
 * - `system` sees every organization. It serves the lookups that find the caller (a key, a session, a webhook id), the
 *   relay and the sweep. Its queries still name the organization wherever they can.
 */
export interface Database {
  readonly system: System
  readonly notifier: Notifier
  readonly url: string
  tenant<T>(organizationId: string, actor: Actor, work: (tx: Tenant) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export interface ConnectOptions {
  url: string
  /** Connections of the tenant pool; the system pool takes half as many. Default 10. */
  poolSize?: number
  applicationName?: string
}

export function connect(options: ConnectOptions): Database {
  const size = options.poolSize ?? 10
  const app = pool(options, 'agx_app', size)
  const system = pool(options, 'agx_system', Math.max(2, Math.ceil(size / 2)))
  const notifier = new Notifier(system)
  return {
    system,
    notifier,
    url: options.url,
    async tenant(organizationId, actor, work) {
      const { result, wakes } = await retryOnDeadlock(async () => {
        const wakes = new Wakes()
        const wake: Tenant['wake'] = (channel, payload) => wakes.add(channel, payload)
        const result = await transaction(app, organizationId, ({ trx, last }) =>
          work({ trx, organizationId, actor, last, wake }),
        )
        return { result, wakes }
      })
      // NOTIFY takes a lock on the whole database until its transaction ends, hence only after the commit.
      for (const [channel, payload] of wakes) notifier.send(channel, payload)
      return result
    },
    async close() {
      await notifier.close()
      await Promise.all([app.destroy(), system.destroy()])
    },
  }
}

/** Throws if PostgreSQL does not answer. */
export async function ping(system: System): Promise<void> {
  await system.raw('select 1')
}

const DEADLOCK = '40P01'
const ATTEMPTS = 3
const MAX_PAUSE_MS = 100

/** Retries on deadlock, each time after a random pause, so that the same transactions do not collide again. */
async function retryOnDeadlock<T>(perform: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await perform()
    } catch (error) {
      if (sqlState(error) !== DEADLOCK || attempt === ATTEMPTS) throw error
      await pause(Math.random() * MAX_PAUSE_MS)
    }
}

function pool(options: ConnectOptions, role: 'agx_app' | 'agx_system', size: number): Knex {
  return knex({
    client: Dialect as unknown as typeof knex.Client,
    connection: {
      connectionString: options.url,
      application_name: options.applicationName ?? 'agx',
      statement_timeout: 30_000,
      idle_in_transaction_session_timeout: 60_000,
      // Statements travel without waiting for the answer to the one before; Knex's types do not know it.
      ...({ pipeline: true } as object),
    },
    pool: {
      min: 0,
      max: size,
      idleTimeoutMillis: 30_000,
      afterCreate(connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) {
        connection.query(`SET ROLE ${role}; SET TIME ZONE 'UTC'`, (error) => done(error, connection))
      },
    },
    acquireConnectionTimeout: 10_000,
    // Knex would print what it also throws, past our own log.
    log: { error() {}, warn() {}, deprecate() {}, debug() {} },
  })
}
