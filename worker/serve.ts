import { setTimeout } from 'node:timers/promises'
import { Client } from '@temporalio/client'
import { NativeConnection, type NativeConnectionOptions, type Worker } from '@temporalio/worker'
import { requireKnownSchema } from '../db/migrations/migrate.ts'
import { ConfigError } from '../db/model/config-error.ts'
import { requirePlainLogins } from '../db/postgres/logins.ts'
import { requireSessions } from '../db/postgres/sessions.ts'
import { approvalLink } from '../db/process/approval-links.ts'
import { temporalProfile } from '../db/process/temporal-profile.ts'
import { readLostAt } from '../db/queue/witness.ts'
import { bounded } from './bounded.ts'
import { workflowBundle } from './bundle.ts'
import type { WorkerContext } from './context.ts'
import type { Health } from './health.ts'
import { countActivities } from './metrics.ts'
import { PoolPresence } from './pool-presence.ts'
import { allQueues } from './queues/index.ts'
import { Relay } from './relay.ts'
import { Sweep } from './sweep.ts'
import { watchCredentials } from './temporal-credentials.ts'
import { requireOwnQueue } from './witness.ts'
import { createPoolWorker, createWorkers } from './workers.ts'

/** The first and the greatest delay before the next connection to Temporal. */
const MIN_DELAY_MS = 250
const MAX_DELAY_MS = 2_000
/** The time limit of the starts in progress when the relay closes. */
const RELAY_MS = 2_000
/** The time limit of cancelled activities, and of closing the connections. */
const EXIT_MS = 5_000

const graceMs = ({ config }: WorkerContext) => config.SHUTDOWN_GRACE * 1_000

/** The longest time that `serve` takes to end once it is stopping, in milliseconds. */
export const shutdownLimitMs = (context: WorkerContext) => RELAY_MS + graceMs(context) + EXIT_MS

interface Connected {
  options: NativeConnectionOptions
  connection: NativeConnection
  client: Client
  workers: Worker[]
  /** When Temporal's last loss was noticed. */
  lostAt: Date | null
}

/**
 * Runs the workers, the relay and the sweep, or the worker of a pool, until `stopping` is aborted. While Temporal or the
 * database is unreachable, the process keeps running, is not ready on /readyz, and reconnects with backoff. Throws
 * ConfigError.
 */
export async function serve(context: WorkerContext, health: Health, stopping: AbortSignal): Promise<void> {
  const { config, pool, dataConverter } = context
  // The worker of a pool runs no workflow.
  const bundle = pool ? '' : await workflowBundle(config.DATA_DIR, dataConverter)
  for (let delay = MIN_DELAY_MS; !stopping.aborted; delay = Math.min(delay * 2, MAX_DELAY_MS)) {
    try {
      const connected = await connectWorkers(context, bundle)
      delay = MIN_DELAY_MS
      await serveConnected(context, connected, health, stopping)
    } catch (error) {
      if (error instanceof ConfigError) throw error
      context.log.error(
        { err: error, delay },
        'Temporal (TEMPORAL_ADDRESS) or the database is unavailable; retrying',
      )
      await setTimeout(delay, undefined, { signal: stopping }).catch(() => {})
    }
  }
}

/** Checks that the database and Temporal are those of this installation, then creates the workers. */
async function connectWorkers(context: WorkerContext, bundle: string): Promise<Connected> {
  const { config, db } = context
  await requireSessions(context.urls)
  await requireKnownSchema(db.system)
  if (!config.ALLOW_SINGLE_DATABASE_LOGIN) await requirePlainLogins(context.urls)
  // Read again for each connection: certificates and a profile are files, which an operator may have replaced.
  const options = temporalProfile().connectionOptions
  const connection = await NativeConnection.connect(options)
  try {
    return { options, ...(await createChecked(context, connection, bundle)) }
  } catch (error) {
    await connection.close().catch(() => {})
    throw error
  }
}

async function createChecked(
  context: WorkerContext,
  connection: NativeConnection,
  bundle: string,
): Promise<Omit<Connected, 'options'>> {
  const { config, db } = context
  const namespace = config.TEMPORAL_NAMESPACE
  await context.server.require(connection)
  await context.attributes.check(connection.workflowService, namespace)
  const client = new Client({ connection, namespace, dataConverter: context.dataConverter })
  const witness = { system: db.system, client, taskQueue: config.TEMPORAL_TASK_QUEUE, log: context.log }
  // Before anything polls: a worker on a copy of another database would end its runs.
  if (await requireOwnQueue(witness, config.TEMPORAL_ADOPT)) context.metrics.temporalLosses.inc()
  const lostAt = await readLostAt(db.system)
  const options = {
    connection,
    namespace,
    taskQueue: config.TEMPORAL_TASK_QUEUE,
    dataConverter: context.dataConverter,
    shutdownGraceMs: graceMs(context),
    interceptors: { activity: [countActivities(context.metrics)] },
  }
  if (context.pool)
    return { connection, client, lostAt, workers: [await createPoolWorker({ ...options, ...context.pool })] }
  const workers = await createWorkers({
    ...options,
    capacity: context.capacity,
    databasePool: config.DATABASE_POOL,
    bundle,
    activities: context.activities,
    deliveries: context.deliveries,
    files: context.files,
    stackTraces: config.WORKFLOW_STACK_TRACES,
  })
  return { connection, client, workers, lostAt }
}

/**
 * Works until `stopping` is aborted, a worker fails, the certificates have changed, or a loss of Temporal is noticed:
 * workers that know workflows of a later moment by heart must forget them. Then ends its parts in order.
 */
async function serveConnected(
  context: WorkerContext,
  { options, connection, client, workers, lostAt }: Connected,
  health: Health,
  stopping: AbortSignal,
): Promise<void> {
  const { db, log, config, pool, metrics } = context
  const namespace = config.TEMPORAL_NAMESPACE
  const taskQueue = config.TEMPORAL_TASK_QUEUE
  const relay = pool ? undefined : new Relay({ db, client, log, queues: queuesOf(context) })
  const sweep = pool
    ? undefined
    : new Sweep({ db, client, log, taskQueue, metrics, relayId: context.relayId })
  const presence =
    pool && new PoolPresence({ db, log, pool: pool.pool, connection, namespace, worker: workers[0]! })
  const running = Promise.all(workers.map((worker) => worker.run()))
  const ending = new AbortController()
  health.watch({ connection, workers })
  context.backlog.watch(connection)
  try {
    await relay?.start()
    const lost = new Promise<void>((resolve) => sweep?.start(lostAt, resolve))
    presence?.start()
    log.info({ taskQueue, namespace, pool: pool?.pool }, 'working')
    const watch = { connection, used: options, load: () => temporalProfile().connectionOptions, log }
    const replaced = watchCredentials({ ...watch, stopping: ending.signal })
    await Promise.race([running, aborted(stopping), lost, replaced])
  } finally {
    ending.abort()
    // The relay first: an eager start needs a worker that polls. A start that hangs is repeated when its lease ends.
    await Promise.race([Promise.all([relay?.close(), presence?.close()]), setTimeout(RELAY_MS)])
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
    // Bounded: a call to a Temporal that hangs must not keep the process from connecting again.
    const ended = Promise.all([running.catch(() => {}), sweep?.close()])
    await Promise.race([ended, setTimeout(graceMs(context) + EXIT_MS, undefined, { ref: false })])
    health.watch(undefined)
    context.backlog.watch(undefined)
    await bounded(EXIT_MS, 'the end of the connection to Temporal', connection.close())
  }
}

function queuesOf({
  db,
  relayId,
  log,
  attributes,
  config,
  capacity,
  mailer,
  secretsKey,
  metrics,
  storage,
  http,
  openMailbox,
}: WorkerContext) {
  const publicUrl = config.PUBLIC_URL
  return allQueues({
    db,
    relayId,
    taskQueue: config.TEMPORAL_TASK_QUEUE,
    log,
    attributes,
    capacity,
    mailer,
    publicUrl,
    approvalLink: (approval) => approvalLink(secretsKey, publicUrl, approval),
    secretsKey,
    storage,
    http,
    openMailbox,
    onMail: (mails, outcome) => metrics.mails.inc({ mails, outcome }),
    onSkipped: (code) => metrics.runsSkipped.inc({ code }),
    onTask: (task) => metrics.threadTasks.inc({ task }),
  })
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
