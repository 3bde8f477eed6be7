import type { Server } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { QueryVectors } from '../db/knowledge/query-vectors.ts'
import { requireKnownSchema } from '../db/migrations/migrate.ts'
import { ConfigError } from '../db/model/config-error.ts'
import { connect, type Database, ping, sealing } from '../db/postgres/connect.ts'
import { requirePlainLogins } from '../db/postgres/logins.ts'
import { Listener } from '../db/postgres/notify.ts'
import { requireSessions } from '../db/postgres/sessions.ts'
import { buildOf } from '../db/process/build.ts'
import { databaseUrls, secretsKey } from '../db/process/config.ts'
import { createEmbeddings } from '../db/process/embeddings.ts'
import { createFetchFile } from '../db/process/fetch-file.ts'
import { createLogger, flushLog } from '../db/process/log.ts'
import { logEnds } from '../db/process/log-ends.ts'
import { LogOutput } from '../db/process/log-output.ts'
import { createMetrics } from '../db/process/metrics.ts'
import { sealerOf } from '../db/process/seal.ts'
import { onStopSignal } from '../db/process/stop-signals.ts'
import { createStorage, requireStorage } from '../db/process/storage/create.ts'
import { startTraces } from '../db/process/traces/start.ts'
import { QueuedRuns } from '../db/runs/queued-runs.ts'
import { addWritten } from '../db/storage/usage.ts'
import { FileStore } from '../db/stored-files/store.ts'
import { redactText } from '../workflows/shared/redact.ts'
import { Compute, createThreads } from './compute/compute.ts'
import { type ApiConfig, readConfig } from './config.ts'
import { createApp } from './create-app.ts'
import { Drain } from './http/drain.ts'
import { KnownWorkflows } from './http/known-workflows.ts'
import { RunEnds } from './http/run-ends.ts'
import { createHttpServer } from './http/server.ts'
import { documentSlots, nodeTestSlots, streamSlots } from './http/slots.ts'
import { inTurns } from './http/turns.ts'
import { ClientDocuments } from './oauth/client-documents.ts'

/** A request that cannot get a PostgreSQL connection within this time gets 503. */
const MAX_WAIT_MS = 4_000
/** Time limit for closing the connections to PostgreSQL once the requests have ended. */
const EXIT_MS = 3_000

/** The API process: reads the config, builds the dependencies, serves until SIGTERM or SIGINT. */
async function main(): Promise<void> {
  const config = readConfig(process.env)
  const output = new LogOutput(1)
  const log = createLogger('api', config.LOG_LEVEL, output, buildOf(config))
  const urls = databaseUrls(config)
  const traces = await startTraces('api', config, log)
  const keys = secretsKey(config)
  const connected = connect({
    ...urls,
    traces,
    poolSize: config.DATABASE_POOL,
    applicationName: 'agx api',
    maxWaitMs: MAX_WAIT_MS,
  })
  const db = sealing(connected, sealerOf(keys))
  await requireDatabase(db)
  await requireSessions(urls)
  if (!config.ALLOW_SINGLE_DATABASE_LOGIN) await requirePlainLogins(urls)
  await requireKnownSchema(db.system)
  const storage = await createStorage(config)
  await requireStorage(storage, log)
  const runEnds = new RunEnds(db.system)
  const wake = (ids: string[]) => runEnds.ended(ids)
  const listener = new Listener(config.DATABASE_URL, { agx_run_ended: wake, agx_run_changed: wake })
  await listener.start()
  logEnds(db, log)
  const metrics = createMetrics({ db, log: output, build: buildOf(config), queues: false })
  metrics.collectProcess()
  db.sent.reportTo((bytes) => addWritten(db.system, bytes))
  const compute = new Compute(createThreads((task) => metrics.threadTasks.inc({ task })))
  const egress = { allow: config.EGRESS_ALLOW, only: config.EGRESS_ONLY }
  const fetchFile = createFetchFile(egress)
  const embeddings = createEmbeddings(egress, () => metrics.embeddingRequests.inc())
  const stopping = new AbortController()
  const app = createApp({
    config,
    db,
    log,
    secretsKey: keys,
    files: new FileStore({ storage, keys, log }),
    runEnds,
    compute,
    fetchFile,
    clientDocuments: new ClientDocuments(fetchFile),
    queryVectors: new QueryVectors(keys, embeddings),
    knownWorkflows: new KnownWorkflows(),
    queuedRuns: new QueuedRuns(),
    streams: streamSlots(),
    nodeTests: nodeTestSlots(),
    documents: documentSlots(),
    metrics,
    traces,
    stopping: stopping.signal,
  })
  const server = createHttpServer(config)
  const drain = new Drain(server)
  server.on('request', inTurns(server, app.callback()))
  await listen(server, config)

  onStopSignal(async (signal) => {
    log.info({ signal }, 'stopping')
    const [delay, grace] = [config.SHUTDOWN_DELAY * 1_000, config.SHUTDOWN_GRACE * 1_000]
    // Exits if the database or a client hangs.
    setTimeout(() => process.exit(1), delay + grace + EXIT_MS)
    stopping.abort()
    drain.begin()
    await pause(delay)
    runEnds.stop()
    const cut = await drain.end(grace)
    if (cut > 0) log.warn({ requests: cut }, 'requests were aborted: SHUTDOWN_GRACE is over')
    await compute.close()
    await embeddings.close()
    await listener.close()
    await db.close()
    await traces?.close()
    await flushLog(log)
    process.exit()
  })
  log.info({ address: config.HOST, port: config.PORT }, 'listening')
}

/** Reports a wrong DATABASE_URL at start, not at the first request. */
async function requireDatabase(db: Database): Promise<void> {
  await ping(db.system).catch((error: Error) => {
    throw new ConfigError(`DATABASE_URL cannot be used: ${redactText(error.message)}`)
  })
}

function listen(server: Server, { HOST, PORT }: ApiConfig): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be used (${error.code})`
      reject(new ConfigError(`PORT ${PORT} ${reason} on HOST ${HOST}: set another`))
    })
    server.listen(PORT, HOST, resolve)
  })
}

main().catch((error: Error) => {
  const line = error instanceof ConfigError ? error.message : redactText(error.stack ?? String(error))
  process.stderr.write(`agx api: ${line}\n`)
  process.exit(1)
})
