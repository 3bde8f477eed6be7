import { setTimeout as pause } from 'node:timers/promises'
import knex, { type Knex } from 'knex'
import pg from 'pg'
import { NIL } from 'uuid'
import { type Actor, SYSTEM } from '../model/actor.ts'
import type { Sealer } from '../model/sealer.ts'
import { PendingSpans, parentIn, type Traces } from '../model/spans.ts'
import type { TraceContext } from '../model/trace-context.ts'
import type { WorkEnd } from '../model/work-end.ts'
import { Notifier } from './notify.ts'
import { preparedStatements } from './prepared.ts'
import type { DatabaseRole, DatabaseUrls } from './roles.ts'
import { SentBytes } from './sent-bytes.ts'
import { Shares } from './shares.ts'
import { sqlState } from './sql-state.ts'
import { type System, type Tenant, tenantOf, Wakes } from './tenancy.ts'
import { type TransactionOptions, transaction } from './transaction.ts'
import { Watchdog } from './watchdog.ts'

// bigint (counts, sizes) fits a double here; numeric stays text, because a float would lose digits of money.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text)

/**
 * The driver sends a statement without waiting for the answer to the one before. Without it, a transaction of one
 * statement (`oneStatement`) takes 2.1 times as long for one client, 1.1 times for 8, and 1.2 to 1.4 times the CPU time
 * of the process; one of three statements takes 1.1 times as long for one client, 1.15 times for 8 (PostgreSQL on the
 * same machine; the median of five rounds of 2,000 transactions each). Knex passes the option on, but does not declare
 * it. transaction.test.ts fails without it ("without waiting for answers").
 */
const PIPELINE: Pick<pg.ClientConfig, 'pipeline'> = { pipeline: true }

/**
 * One process's access to PostgreSQL: two pools, one for each role, and the notifier.
 * - `tenant()` is the default: a transaction in which row-level security shows one organization. It retries on
 *   deadlock (40P01), so `work` can run more than once. One organization holds at most a share of the connections.
 * - `system` sees every organization. It serves the lookups that find the caller (a key, a session, a webhook id), the
 *   relay and the sweep. Its queries still name the organization wherever they can.
 */
export interface Database {
  readonly system: System
  readonly notifier: Notifier
  readonly url: string
  poolUse(): { tenant: PoolUse; system: PoolUse }
  /** The bytes that transactions of organizations have sent; see `db/storage/usage.ts`. */
  readonly sent: SentBytes
  /** Calls `listener` for all work that this process has ended, after the commit. */
  onEnd(listener: (end: WorkEnd) => void): void
  /** Tells the listeners of work that a transaction of the system role has ended, after its commit. */
  reportEnds(ends: readonly WorkEnd[]): void
  tenant<T>(
    organizationId: string,
    actor: Actor,
    work: (tx: Tenant) => Promise<T>,
    /** The request's trace; without it, each event and run without a cause has a new one. */
    trace?: TraceContext,
    options?: TenantOptions,
  ): Promise<T>
  close(): Promise<void>
}

export type TenantOptions = Pick<TransactionOptions, 'readOnly' | 'oneStatement' | 'afterBegin'>

/** With one URL, its login switches to the roles; with two, each role logs in by itself. */
export interface ConnectOptions extends DatabaseUrls {
  /** Connections of the tenant pool; the system pool takes half as many. Default 10. */
  poolSize?: number
  applicationName?: string
  /**
   * Milliseconds that work waits for a connection before it fails. A PostgreSQL that hangs then fails all work too.
   * Default: 10 s for a connection, and no end for a PostgreSQL that hangs.
   */
  maxWaitMs?: number
  /** Records the spans of transactions. */
  traces?: Traces | undefined
}

/** The use of one pool: connections in use, connections that are idle, and callers that wait for one. */
export interface PoolUse {
  used: number
  idle: number
  waiting: number
}

export function connect(options: ConnectOptions): Database {
  const size = options.poolSize ?? 10
  const isBusy = () => Object.values(poolUse()).some(({ used, waiting }) => used + waiting > 0)
  const watchdog = options.maxWaitMs === undefined ? undefined : new Watchdog(options.url, isBusy)
  const app = pool(options, 'agx_app', size, watchdog)
  const shares = new Shares(size, options.maxWaitMs ?? MAX_WAIT_MS)
  const system = pool(options, 'agx_system', Math.max(2, Math.ceil(size / 2)), watchdog)
  const notifier = new Notifier(system)
  const sent = new SentBytes()
  const endListeners: ((end: WorkEnd) => void)[] = []
  const poolUse = () => {
    const tenant = useOf(app)
    return { tenant: { ...tenant, waiting: tenant.waiting + shares.waiting }, system: useOf(system) }
  }
  const reportEnds = (ends: readonly WorkEnd[]) => {
    for (const end of ends) for (const listener of endListeners) listener(end)
  }
  return {
    system,
    notifier,
    url: options.url,
    poolUse,
    sent,
    onEnd: (listener) => void endListeners.push(listener),
    reportEnds,
    async tenant(organizationId, actor, work, trace, tenantOptions) {
      const { result, wakes, ends, spans } = await retryOnDeadlock(async () => {
        const wakes = new Wakes()
        const spans = options.traces && new PendingSpans(trace && parentIn(trace))
        const traced = spans && { spans }
        const ends: WorkEnd[] = []
        const result = await shares.run(organizationId, () =>
          transaction(
            app,
            organizationId,
            (begun) => work({ ...tenantOf(begun, organizationId, actor, wakes), ends, ...traced }),
            {
              traceId: trace?.traceId,
              ...tenantOptions,
              sent: tenantOptions?.readOnly ? undefined : sent.counterOf(organizationId),
            },
          ),
        )
        return { result, wakes, ends, spans }
      })
      for (const span of spans ?? []) options.traces?.record(span)
      reportEnds(ends)
      for (const [channel, payload] of wakes.all()) notifier.send(channel, payload)
      return result
    },
    async close() {
      await sent.flush()
      await notifier.close()
      await watchdog?.close()
      await Promise.all([app.destroy(), system.destroy()])
    },
  }
}

/** The same database, whose transactions seal and open the values of sensitive fields. */
export const sealing = <D extends Database>(db: D, sealer: Sealer): D => ({
  ...db,
  tenant: (organizationId, actor, work, ...options) =>
    db.tenant(organizationId, actor, (tx) => work({ ...tx, sealer }), ...options),
})

/** Throws if PostgreSQL does not answer. */
export async function ping(system: System): Promise<void> {
  await system.raw('select 1')
}

/** Time for a connection, after which a transaction may just be waiting for those of others. */
const BUSY_MS = 1_000

/**
 * Throws if PostgreSQL refuses transactions of the system or of organizations, which have another login. One of an
 * organization that only waits, because others have connections, says nothing: a busy process must stay ready. While
 * none has one, as with a login that is not answered, it waits on, up to `maxWaitMs`.
 */
export async function pingLogins(db: Probed): Promise<void> {
  const tenant = probeTenant(db)
  const busy = async () => {
    await pause(BUSY_MS)
    if (db.poolUse().tenant.used === 0) await tenant
  }
  await Promise.all([ping(db.system), Promise.race([tenant, busy()])])
}

type Probed = Pick<Database, 'system' | 'tenant' | 'poolUse'>

/** The transactions of organizations that try their login: one at a time, since each waits for a connection. */
const probes = new WeakMap<Probed, Promise<void>>()

function probeTenant(db: Probed): Promise<void> {
  const current = probes.get(db)
  if (current) return current
  const probe = db
    .tenant(NIL, SYSTEM, async ({ trx }) => void (await trx.raw('select 1')), undefined, { readOnly: true })
    .finally(() => probes.delete(db))
  probes.set(db, probe)
  return probe
}

/** Default of `maxWaitMs` for a connection. */
const MAX_WAIT_MS = 10_000

/** SQLSTATE. */
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

function useOf(pool: Knex): PoolUse {
  const { pool: tarn } = pool.client
  return { used: tarn.numUsed(), idle: tarn.numFree(), waiting: tarn.numPendingAcquires() }
}

function pool(
  options: ConnectOptions,
  role: DatabaseRole,
  size: number,
  watchdog: Watchdog | undefined,
): Knex {
  const { maxWaitMs, systemUrl } = options
  const setup = [...(systemUrl === undefined ? [`SET ROLE ${role}`] : []), "SET TIME ZONE 'UTC'"].join('; ')
  const prepare = preparedStatements()
  const pool = knex({
    client: 'pg',
    connection: {
      connectionString: role === 'agx_system' ? (systemUrl ?? options.url) : options.url,
      application_name: options.applicationName ?? 'agx',
      statement_timeout: 30_000,
      idle_in_transaction_session_timeout: 60_000,
      ...(maxWaitMs !== undefined && { connectionTimeoutMillis: maxWaitMs }),
      ...(watchdog && { stream: watchdog.stream }),
      ...PIPELINE,
    },
    pool: {
      min: 0,
      max: size,
      idleTimeoutMillis: 30_000,
      ...(maxWaitMs !== undefined && { createTimeoutMillis: maxWaitMs }),
      // A connection that is refused fails one caller, the one that has waited longest: this soon the next one.
      ...(watchdog && { createRetryIntervalMillis: 20 }),
      afterCreate(connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) {
        prepare(connection)
        connection.query(setup, (error) => done(error, connection))
      },
    },
    acquireConnectionTimeout: maxWaitMs ?? MAX_WAIT_MS,
    // Knex would print what it also throws, past our own log.
    log: { error() {}, warn() {}, deprecate() {}, debug() {} },
  })
  requireInternals(pool)
  return pool
}

/** Throws if this version of Knex lacks a member that we use and that it does not declare; package.json pins it. */
export function requireInternals({ client }: Knex): void {
  const missing = [
    ...['acquireConnection', 'releaseConnection'].filter((name) => typeof client[name] !== 'function'),
    ...['numUsed', 'numFree', 'numPendingAcquires'].filter(
      (name) => typeof client.pool?.[name] !== 'function',
    ),
  ]
  if (missing.length > 0)
    throw new Error(`this version of Knex has no ${missing.join(', ')}: see db/postgres/connect.ts`)
}
