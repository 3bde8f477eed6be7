import { randomUUID } from 'node:crypto'
import { LightWork } from '../activities/compute/light-work.ts'
import { createDeliver } from '../activities/deliver.ts'
import { createEffects } from '../activities/effects/index.ts'
import { createFiles } from '../activities/files/index.ts'
import { createHttp } from '../activities/http/client.ts'
import { createActivities, createPoolActivities } from '../activities/index.ts'
import { createMailboxes } from '../activities/mail/mailbox.ts'
import { createMailer } from '../activities/mail/mailer.ts'
import { RateSource } from '../activities/rates/source.ts'
import { CodeRunner } from '../activities/sandbox/runner.ts'
import { CallSlots } from '../activities/slots/call-slots.ts'
import { QueryVectors } from '../db/knowledge/query-vectors.ts'
import type { Traces } from '../db/model/spans.ts'
import { connect, type Database, sealing } from '../db/postgres/connect.ts'
import type { DatabaseUrls } from '../db/postgres/roles.ts'
import { buildOf } from '../db/process/build.ts'
import { databaseUrls, payloadKeys, secretsKey } from '../db/process/config.ts'
import { createEmbeddings } from '../db/process/embeddings.ts'
import { createLogger, flushLog, type Logger } from '../db/process/log.ts'
import { logEnds } from '../db/process/log-ends.ts'
import { LogOutput } from '../db/process/log-output.ts'
import { createMetrics, type Metrics } from '../db/process/metrics.ts'
import { type SecretsKey, sealerOf } from '../db/process/seal.ts'
import { createStorage, requireStorage } from '../db/process/storage/create.ts'
import { startTraces } from '../db/process/traces/start.ts'
import { unsubscribeLink } from '../db/process/unsubscribe-links.ts'
import { addWritten } from '../db/storage/usage.ts'
import { FileStore } from '../db/stored-files/store.ts'
import { CODE } from '../workflows/shared/limits.ts'
import type { WorkerConfig } from './config.ts'
import { dataConverterOf } from './data-converter.ts'
import { NamespaceAttributes } from './namespace-attributes.ts'
import { PoolBacklog } from './pool-backlog.ts'
import { RunCapacity } from './run-capacity.ts'
import { installSdkRuntime } from './sdk-runtime.ts'
import { ServerCheck } from './temporal-server.ts'
import { MOST_RUNS, segmentsAtOnce } from './workers.ts'

export type WorkerContext = Awaited<ReturnType<typeof createContext>>

/** Builds what lives as long as the worker process. Temporal and the database may still be unreachable. */
export async function createContext(config: WorkerConfig) {
  const output = new LogOutput(1)
  const log = createLogger('worker', config.LOG_LEVEL, output, buildOf(config))
  const sdkMetrics = await installSdkRuntime(log)
  const traces = await startTraces('worker', config, log)
  const urls = databaseUrls(config)
  const key = secretsKey(config)
  const db = openDatabase(urls, { config, traces, log, key })
  const pool = config.WORKER_POOL
  const backlog = new PoolBacklog({
    namespace: config.TEMPORAL_NAMESPACE,
    taskQueue: config.TEMPORAL_TASK_QUEUE,
  })
  const slots = new CallSlots()
  const metrics = startMetrics(config, { db, output, backlog, slots })
  const publicUrl = config.PUBLIC_URL
  const { http, openMailbox, embeddings, rates } = createClients(config, metrics)
  const { code, lightWork } = createThreads(config, metrics)
  const mailer = createMailer(config)
  const storage = await createStorage(config)
  await requireStorage(storage, log)
  const files = new FileStore({ storage, keys: key, log })
  const effects = createEffects({
    db,
    http: http.call,
    code,
    mailer,
    rates,
    files,
    queryVectors: new QueryVectors(key, embeddings),
    ...(publicUrl !== undefined && {
      unsubscribeLink: (organization_id: string, address: string) =>
        unsubscribeLink(key, publicUrl, { organization_id, address }),
    }),
  })
  const capacity = new RunCapacity(MOST_RUNS)
  const keys = payloadKeys(config)
  const dataConverter = dataConverterOf(keys)
  const attributes = new NamespaceAttributes(log, { hidesNames: keys.encrypt !== undefined })
  const relayId = randomUUID()
  const activityDeps = {
    db,
    log,
    effects,
    embeddings,
    lightWork,
    slots,
    secretsKey: key,
    publicUrl,
    traces,
    recordDelay: (ms: number) => capacity.recordDelay(ms),
    hasAttribute: (name: string) => attributes.has(name),
  }
  return {
    config,
    log,
    db,
    urls,
    metrics,
    backlog,
    /** In Prometheus' text format. */
    metricsText: async () => (await metrics.text()) + (await sdkMetrics()),
    secretsKey: key,
    mailer,
    http,
    openMailbox,
    storage,
    capacity,
    attributes,
    server: new ServerCheck({
      system: db.system,
      log,
      namespace: config.TEMPORAL_NAMESPACE,
      adopt: config.TEMPORAL_ADOPT,
    }),
    dataConverter,
    /** Identifies this worker's relay on the deliveries that it claims and its workers attempt. */
    relayId,
    activities: createActivities(activityDeps),
    /** The pool that this worker is in, with the activities that it then has instead of all others. */
    pool:
      pool === undefined ? undefined : { pool, activities: createPoolActivities({ ...activityDeps, pool }) },
    deliveries: createDeliver({
      db,
      http,
      secretsKey: key,
      relayId,
      traces,
      onDeactivated: () => metrics.webhooksDeactivated.inc(),
    }),
    files: createFiles({ db, log }),
    async close(): Promise<void> {
      await http.close()
      await embeddings.close()
      await code.close()
      await lightWork.close()
      await db.close()
      await traces?.close()
      await flushLog(log)
    },
  }
}

/** The database, which seals secrets, logs the ends of work and counts what transactions send. */
function openDatabase(
  urls: DatabaseUrls,
  {
    config,
    traces,
    log,
    key,
  }: { config: WorkerConfig; traces: Traces | undefined; log: Logger; key: SecretsKey },
): Database {
  const connected = connect({
    ...urls,
    traces,
    poolSize: config.DATABASE_POOL,
    applicationName: 'agx worker',
  })
  const db = sealing(connected, sealerOf(key))
  logEnds(db, log)
  db.sent.reportTo((bytes) => addWritten(db.system, bytes))
  return db
}

/** The metrics of the worker, with those of its own process. */
function startMetrics(
  config: WorkerConfig,
  { db, output, backlog, slots }: { db: Database; output: LogOutput; backlog: PoolBacklog; slots: CallSlots },
): Metrics {
  // Workers without a pool report the figures of queues and pools: they run also where a pool has no worker.
  const isInPool = config.WORKER_POOL !== undefined
  const metrics = createMetrics({
    db,
    log: output,
    build: buildOf(config),
    queues: !isInPool,
    callSlots: () => slots.use,
    ...(!isInPool && { poolBacklog: (name: string) => backlog.of(name) }),
  })
  metrics.collectProcess()
  return metrics
}

/** The clients of other services, within the rules of egress. */
function createClients(config: WorkerConfig, metrics: Metrics) {
  const egress = { allow: config.EGRESS_ALLOW, only: config.EGRESS_ONLY }
  const http = createHttp(egress)
  return {
    http,
    openMailbox: createMailboxes(egress),
    embeddings: createEmbeddings(egress, () => metrics.embeddingRequests.inc()),
    rates: new RateSource(http.call, config.EXCHANGE_RATES_URL),
  }
}

/** The threads that compute what tenants choose. */
function createThreads(config: WorkerConfig, metrics: Metrics) {
  const onTask = (task: string) => metrics.threadTasks.inc({ task })
  return {
    code: new CodeRunner(CODE, onTask),
    lightWork: new LightWork({ segments: segmentsAtOnce(config.DATABASE_POOL), onTask }),
  }
}
