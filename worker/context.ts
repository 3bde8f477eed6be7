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
import { connect, sealing } from '../db/postgres/connect.ts'
import { buildOf } from '../db/process/build.ts'
import { databaseUrls, payloadKeys, secretsKey } from '../db/process/config.ts'
import { createEmbeddings } from '../db/process/embeddings.ts'
import { createLogger, flushLog } from '../db/process/log.ts'
import { logEnds } from '../db/process/log-ends.ts'
import { LogOutput } from '../db/process/log-output.ts'
import { createMetrics } from '../db/process/metrics.ts'
import { sealerOf } from '../db/process/seal.ts'
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
  const connected = connect({
    ...urls,
    traces,
    poolSize: config.DATABASE_POOL,
    applicationName: 'agx worker',
  })
  const db = sealing(connected, sealerOf(key))
  logEnds(db, log)
  const pool = config.WORKER_POOL
  const backlog = new PoolBacklog({
    namespace: config.TEMPORAL_NAMESPACE,
    taskQueue: config.TEMPORAL_TASK_QUEUE,
  })
  const slots = new CallSlots()
  const metrics = createMetrics({
    db,
    log: output,
    build: buildOf(config),
    queues: pool === undefined,
    callSlots: () => slots.use,
    // Workers without a pool report it: they run also where a pool has no worker.
    ...(pool === undefined && { poolBacklog: (name: string) => backlog.of(name) }),
  })
  metrics.collectProcess()
  db.sent.reportTo((bytes) => addWritten(db.system, bytes))

  const publicUrl = config.PUBLIC_URL
  const egress = { allow: config.EGRESS_ALLOW, only: config.EGRESS_ONLY }
  const http = createHttp(egress)
  const openMailbox = createMailboxes(egress)
  const embeddings = createEmbeddings(egress, () => metrics.embeddingRequests.inc())
  const onTask = (task: string) => metrics.threadTasks.inc({ task })
  const code = new CodeRunner(CODE, onTask)
  const lightWork = new LightWork({ segments: segmentsAtOnce(config.DATABASE_POOL), onTask })
  const mailer = createMailer(config)
  const rates = new RateSource(http.call, config.EXCHANGE_RATES_URL)
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
