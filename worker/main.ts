import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { Client } from '@temporalio/client'
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker'
import { createDeliver } from '../activities/deliver.ts'
import { createEffects } from '../activities/effects/index.ts'
import { createFiles } from '../activities/files/index.ts'
import { createHttp } from '../activities/http/client.ts'
import { createActivities } from '../activities/index.ts'
import { createMailer } from '../activities/mail/mailer.ts'
import { RateSource } from '../activities/rates/source.ts'
import { CodeRunner } from '../activities/sandbox/runner.ts'
import { requireKnownSchema } from '../db/migrations/migrate.ts'
import { ConfigError } from '../db/model/config-error.ts'
import { connect } from '../db/postgres/connect.ts'
import { requirePlainLogins } from '../db/postgres/logins.ts'
import { databaseUrls, secretsKey } from '../db/process/config.ts'
import { createLogger, flushLog, type Logger } from '../db/process/log.ts'
import { LogOutput } from '../db/process/log-output.ts'
import { createMetrics } from '../db/process/metrics.ts'
import { temporalProfile } from '../db/process/temporal-profile.ts'
import { startTraces } from '../db/process/traces/start.ts'
import { type ApprovalKey, approvalLink } from '../db/runs/approval-links.ts'
import { requireTemporalServer } from '../db/runs/temporal-server.ts'
import { redactText } from '../workflows/shared/redact.ts'
import { bounded } from './bounded.ts'
import { workflowBundle } from './bundle.ts'
import { readConfig } from './config.ts'
import { freePort } from './dev/postgres/server.ts'
import { serveHealth } from './health.ts'
import { countActivities } from './metrics.ts'
import { allQueues } from './queues/index.ts'
import { Relay } from './relay.ts'
import { RunCapacity } from './run-capacity.ts'
import { Sweep } from './sweep.ts'
import { describeTemporalServer } from './temporal-server.ts'
import { createWorkers, MOST_RUNS } from './workers.ts'

/** Of the retries of a connection to Temporal. */
const MAX_DELAY_MS = 2_000
/** For the starts in progress when the relay closes. */
const RELAY_MS = 2_000
/** For the cancelled activities to end, and the connections to close. */
const EXIT_MS = 5_000

/** The worker process: runs workflows and activities. Only workers start runs and deliveries. */
async function main(): Promise<void> {
  process.env.TZ = 'UTC'
  const config = readConfig(process.env)
  const output = new LogOutput(1)
  const log = createLogger('worker', config.LOG_LEVEL, output)
  const sdkMetrics = `127.0.0.1:${await freePort()}`
  Runtime.install({
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => log[levels[level]](meta ?? {}, message)),
    // We handle signals ourselves: the relay stops before the workers.
    shutdownSignals: [],
    telemetryOptions: { metrics: { prometheus: { bindAddress: sdkMetrics } } },
  })
  const urls = databaseUrls(config)
  const traces = await startTraces('worker', config, log)
  const db = connect({
    ...urls,
    traces,
    poolSize: config.DATABASE_POOL,
    applicationName: 'agx worker',
  })
  const metrics = createMetrics({ db, log: output, queues: true })
  metrics.collectProcess()
  const stopping = new AbortController()
  const health = await serveHealth({
    db,
    log,
    namespace: config.TEMPORAL_NAMESPACE,
    host: config.HOST,
    port: config.WORKER_PORT,
    stopping: stopping.signal,
    metricsToken: config.METRICS_TOKEN,
    // The metrics of the SDK are served by the SDK itself, on this machine only.
    metrics: async () =>
      (await metrics.text()) + (await (await fetch(`http://${sdkMetrics}/metrics`)).text()),
  })
  const graceMs = config.SHUTDOWN_GRACE * 1_000
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      log.info({ signal }, 'stopping')
      // A second signal exits immediately; the timer, where a database or an activity hangs.
      process.once(signal, () => process.exit(1))
      globalThis.setTimeout(() => process.exit(1), RELAY_MS + graceMs + EXIT_MS)
      stopping.abort()
    })

  const bundle = await workflowBundle(config.DATA_DIR)
  const http = createHttp({ allow: config.EGRESS_ALLOW })
  const key = secretsKey(config)
  const code = new CodeRunner()
  const mailer = createMailer(config)
  const effects = createEffects({
    db,
    http: http.call,
    code,
    mailer,
    rates: new RateSource(http.call, config.EXCHANGE_RATES_URL),
  })
  const capacity = new RunCapacity(MOST_RUNS)
  const activities = createActivities({
    db,
    log,
    effects,
    secretsKey: key,
    publicUrl: config.PUBLIC_URL,
    traces,
    recordDelay: (ms) => capacity.recordDelay(ms),
  })
  const linkOf = (approval: ApprovalKey) => approvalLink(key, config.PUBLIC_URL, approval)
  const relayId = randomUUID()
  const deliveries = createDeliver({ db, http, secretsKey: key, relayId, traces })
  const files = createFiles({ db, log })
  const taskQueue = config.TEMPORAL_TASK_QUEUE
  const namespace = config.TEMPORAL_NAMESPACE
  const { connectionOptions } = temporalProfile()

  // While Temporal is unreachable the process keeps running, is not ready on /readyz, and reconnects with backoff.
  for (let delay = 250; !stopping.signal.aborted; delay = Math.min(delay * 2, MAX_DELAY_MS)) {
    try {
      await requireKnownSchema(db.system)
      if (!config.ALLOW_SINGLE_DATABASE_LOGIN) await requirePlainLogins(urls)
      const connection = await NativeConnection.connect(connectionOptions)
      const server = await describeTemporalServer(connection, namespace)
      await requireTemporalServer(db.system, server, config.TEMPORAL_ADOPT)
      const workers = await createWorkers({
        capacity,
        connection,
        namespace,
        taskQueue,
        bundle,
        activities,
        deliveries,
        files,
        shutdownGraceMs: graceMs,
        stackTraces: config.WORKFLOW_STACK_TRACES,
        interceptors: { activity: [countActivities(metrics)] },
      })
      delay = 250
      const client = new Client({ connection, namespace })
      const mails = { mailer, publicUrl: config.PUBLIC_URL, approvalLink: linkOf, secretsKey: key }
      const queues = allQueues({ db, relayId, taskQueue, log, capacity, ...mails })
      const relay = new Relay({ db, client, log, queues })
      const sweep = new Sweep({ db, client, log })
      const running = Promise.all(workers.map((worker) => worker.run()))
      health.watch({ connection, workers })
      try {
        await relay.start()
        sweep.start()
        log.info({ taskQueue, namespace }, 'working')
        await Promise.race([running, aborted(stopping.signal)])
      } finally {
        // The relay first: an eager start needs a worker that polls. A start that hangs is repeated when its lease ends.
        await Promise.race([relay.close(), setTimeout(RELAY_MS)])
        for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
        // Bounded: a call to a Temporal that hangs must not keep the process from connecting again.
        const ended = Promise.all([running.catch(() => {}), sweep.close()])
        await Promise.race([ended, setTimeout(graceMs + EXIT_MS, undefined, { ref: false })])
        health.watch(undefined)
        await bounded(EXIT_MS, 'the end of the connection to Temporal', connection.close())
      }
    } catch (error) {
      if (error instanceof ConfigError) throw error
      log.error({ err: error, delay }, 'Temporal (TEMPORAL_ADDRESS) or the database is unavailable; retrying')
      await setTimeout(delay, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }
  await health.close()
  await http.close()
  await code.close()
  await db.close()
  await traces?.close()
  await flushLog(log)
  process.exit()
}

const levels = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
} as const satisfies Record<string, keyof Logger>

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

main().catch((error: Error) => {
  const line = error instanceof ConfigError ? error.message : redactText(error.stack ?? String(error))
  process.stderr.write(`agx worker: ${line}\n`)
  process.exit(1)
})
