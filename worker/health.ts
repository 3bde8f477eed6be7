import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { NativeConnection, Worker } from '@temporalio/worker'
import { isMigrated } from '../db/migrations/migrate.ts'
import { ConfigError } from '../db/model/config-error.ts'
import { type Database, pingLogins } from '../db/postgres/connect.ts'
import type { Build } from '../db/process/build.ts'
import type { Logger } from '../db/process/log.ts'
import { METRICS_TYPE } from '../db/process/metrics.ts'
import { isFromOperator } from '../db/process/operator-request.ts'
import { requireTemporalAnswers } from '../db/process/temporal-answers.ts'
import { bounded } from './bounded.ts'
import { answerCodec, type CodecEndpoint } from './codec-endpoint.ts'

const TIMEOUT_MS = 2_000
const CODEC = '/codec/'
const CACHE_MS = 2_000
/** temporal.api.enums.v1.TaskQueueType. */
const WORKFLOW_QUEUE = 1
const ACTIVITY_QUEUE = 2

interface Watched {
  connection: NativeConnection
  workers: Worker[]
}

/** Workers whose polls Temporal has confirmed. */
type Confirmed = WeakSet<Worker>

export interface Health {
  /** Sets what /readyz checks; undefined while there is no connection to Temporal. */
  watch(watched: Watched | undefined): void
  close(): Promise<void>
}

/**
 * `/healthz`: the process is alive. `/readyz`: the database answers with both logins and is migrated, Temporal answers,
 * and every worker polls. Throws ConfigError if the port cannot be used.
 */
export async function serveHealth(options: {
  db: Database
  log: Logger
  build: Build
  namespace: string
  host: string
  port: number
  /** Aborted by SIGTERM. */
  stopping: AbortSignal
  /** In Prometheus' text format. */
  metrics: () => Promise<string>
  metricsToken: string | undefined
  /** Absent: nothing in Temporal is encrypted. */
  codec?: CodecEndpoint | undefined
}): Promise<Health> {
  let watched: Watched | undefined
  const confirmed: Confirmed = new WeakSet()
  let last: { at: number; checks: Promise<Record<string, string>> } | undefined
  const cachedChecks = () => {
    if (!last || Date.now() - last.at > CACHE_MS)
      last = { at: Date.now(), checks: check(options, watched, confirmed) }
    return last.checks
  }
  const server = createServer(async (request, response) => {
    const [path] = (request.url ?? '').split('?')
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (path === '/healthz') return answer(200, { status: 'alive', ...options.build })
    if (path === '/metrics') return answerMetrics(request, response, options)
    if (options.codec && path?.startsWith(CODEC))
      return answerCodec(request, response, path.slice(CODEC.length), options.codec)
    if (path !== '/readyz') return answer(404, { error: { type: 'not_found', message: 'not found' } })
    const checks = await cachedChecks()
    if (options.stopping.aborted) return answer(503, { status: 'stopping', checks })
    const ready = Object.values(checks).every((outcome) => outcome === 'ok')
    return answer(ready ? 200 : 503, { status: ready ? 'ready' : 'not_ready', checks })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ConfigError(`WORKER_PORT ${options.port} cannot be used (${error.code}): set another port`)),
    )
    server.listen(options.port, options.host, resolve)
  })
  return {
    watch(next) {
      watched = next
      last = undefined
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}

async function answerMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  { metrics, metricsToken }: { metrics: () => Promise<string>; metricsToken: string | undefined },
): Promise<void> {
  if (!isFromOperator(request, metricsToken)) {
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    return
  }
  const text = await metrics().catch(() => undefined)
  if (text === undefined) response.writeHead(500).end()
  else response.writeHead(200, { 'content-type': METRICS_TYPE }).end(text)
}

async function check(
  { db, log, namespace }: { db: Database; log: Logger; namespace: string },
  watched: Watched | undefined,
  confirmed: Confirmed,
): Promise<Record<string, string>> {
  const outcome = async (name: string, work: () => Promise<boolean>): Promise<[string, string]> => {
    try {
      return [name, (await bounded(TIMEOUT_MS, name, work())) ? 'ok' : 'failed']
    } catch (error) {
      log.warn({ check: name, reason: String(error) }, 'not ready')
      return [name, 'failed']
    }
  }
  return Object.fromEntries(
    await Promise.all([
      outcome('database', () => pingLogins(db).then(() => true)),
      outcome('migrations', () => isMigrated(db.system)),
      outcome('temporal', async () => {
        if (watched) await requireTemporalAnswers(watched.connection, namespace, TIMEOUT_MS)
        return watched !== undefined
      }),
      outcome('pollers', async () => watched !== undefined && (await isPolling(watched, confirmed))),
    ]),
  )
}

/**
 * Whether every worker of this process runs, and Temporal has listed it once as a poller of its task queue. Later lists
 * are no evidence: Temporal's list is empty after a restart, and drops a worker whose slots are all taken. The SDK
 * repeats failed polls by itself.
 */
async function isPolling({ connection, workers }: Watched, confirmed: Confirmed): Promise<boolean> {
  const polling = workers.map(async (worker) => {
    const { namespace, taskQueue, identity, workflowBundle } = worker.options
    if (worker.getState() !== 'RUNNING') return false
    if (confirmed.has(worker)) return true
    const { pollers } = await connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: workflowBundle ? WORKFLOW_QUEUE : ACTIVITY_QUEUE,
    })
    const listed = pollers.some((poller) => poller.identity === identity)
    if (listed) confirmed.add(worker)
    return listed
  })
  return (await Promise.all(polling)).every(Boolean)
}
