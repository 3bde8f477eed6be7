import { randomBytes, randomUUID } from 'node:crypto'
import { Client } from '@temporalio/client'
import { DefaultLogger, NativeConnection, Runtime, type Worker } from '@temporalio/worker'
import { LightWork } from '../../activities/compute/light-work.ts'
import { createDeliver } from '../../activities/deliver.ts'
import { createEffects } from '../../activities/effects/index.ts'
import { createFiles } from '../../activities/files/index.ts'
import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import { createActivities, createPoolActivities } from '../../activities/index.ts'
import { createMailboxes } from '../../activities/mail/mailbox.ts'
import type { Mailer } from '../../activities/mail/mailer.ts'
import { RateSource } from '../../activities/rates/source.ts'
import { CodeRunner } from '../../activities/sandbox/runner.ts'
import type { CallSlots } from '../../activities/slots/call-slots.ts'
import { QueryVectors } from '../../db/knowledge/query-vectors.ts'
import { type Database, sealing } from '../../db/postgres/connect.ts'
import { type ApprovalKey, approvalLink } from '../../db/process/approval-links.ts'
import type { PayloadKeys } from '../../db/process/config.ts'
import { createEmbeddings } from '../../db/process/embeddings.ts'
import { createLogger, type Logger } from '../../db/process/log.ts'
import { sealerOf } from '../../db/process/seal.ts'
import { diskStorage } from '../../db/process/storage/disk.ts'
import type { FileStorage } from '../../db/process/storage/storage.ts'
import { unsubscribeLink } from '../../db/process/unsubscribe-links.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { FileStore } from '../../db/stored-files/store.ts'
import { createWorkflow } from '../../db/workflows/workflows.ts'
import { dataConverterOf } from '../../worker/data-converter.ts'
import { NamespaceAttributes } from '../../worker/namespace-attributes.ts'
import { PoolPresence } from '../../worker/pool-presence.ts'
import { allQueues } from '../../worker/queues/index.ts'
import { Relay } from '../../worker/relay.ts'
import { RunCapacity } from '../../worker/run-capacity.ts'
import { createPoolWorker, createWorkers, MOST_RUNS } from '../../worker/workers.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import { RUN_END_STATUSES } from '../../workflows/shared/statuses.ts'
import { testBundle } from './bundle.ts'
import { filesOf, testActor } from './database.ts'
import { completeDefinition, type PartialDefinition } from './definition.ts'
import { searchedLog } from './planted.ts'
import { workerThreads } from './threads.ts'
import { until } from './until.ts'

const PUBLIC_URL = 'http://localhost:8080'

/** The log is shown with TEST_LOG_LEVEL; otherwise it is searched for planted secrets. */
export const testLog = process.env.TEST_LOG_LEVEL
  ? createLogger('worker', process.env.TEST_LOG_LEVEL)
  : createLogger('worker', 'trace', searchedLog('worker'))

// The SDK's own log would hide the names of the tests.
Runtime.install({ logger: new DefaultLogger('ERROR') })

type Advance = ReturnType<typeof createActivities>['advance']

/** A minimal worker process: relay and workers on a task queue of their own. */
export interface TestWorker {
  client: Client
  taskQueue: string
  connection: NativeConnection
  workers: Worker[]
  /** Idempotent. */
  stop(): Promise<void>
}

export async function startWorker(
  given: Database,
  effects: {
    http?: HttpClient['call']
    mailer?: Mailer | undefined
    ratesUrl?: string
    /** The seconds of a minute of the limits of mails. */
    mailMinute?: number
    advance?: (advance: Advance) => Advance
    /** The key of the API, which sealed the secrets of endpoints and the values of node tests. */
    secretsKey?: Buffer
    stackTraces?: boolean
    /** The path of the workflow bundle; default: `testBundle`. */
    bundle?: string
    nodeTestMs?: number
    /** Fewer slots for calls than usual, so that a test needs few calls. */
    slots?: CallSlots
    /** Uses other threads than usual. */
    lightWork?: LightWork
    /** Polling interval of the relay. */
    pollMs?: number
    log?: Logger
    namespace?: string
    payloadKeys?: PayloadKeys
    /** Default: the folder of the API. */
    storage?: FileStorage
    /** The address of Temporal; that of the suite by default. */
    address?: string
  } = {},
  taskQueue = `test-${randomUUID()}`,
): Promise<TestWorker> {
  const address = effects.address ?? process.env.TEST_TEMPORAL_ADDRESS
  if (!address) throw new Error('TEST_TEMPORAL_ADDRESS is not set')
  const connection = await NativeConnection.connect({ address })
  const { namespace = 'default' } = effects
  const dataConverter = dataConverterOf(effects.payloadKeys ?? { open: [] })
  const client = new Client({ connection, namespace, dataConverter })
  const unused = () => {
    throw new Error('not part of this test')
  }
  const secretsKey = effects.secretsKey ?? randomBytes(32)
  const db = sealing(given, sealerOf(secretsKey))
  const log = effects.log ?? testLog
  const capacity = new RunCapacity(MOST_RUNS)
  const code = new CodeRunner()
  const lightWork = effects.lightWork ?? new LightWork({ threads: workerThreads })
  const storage = effects.storage ?? diskStorage(filesOf(db))
  const files = new FileStore({ storage, keys: secretsKey, log })
  const attributes = new NamespaceAttributes(log, { hidesNames: effects.payloadKeys?.encrypt !== undefined })
  await attributes.check(client.workflowService, namespace)
  const embeddings = createEmbeddings({ allow: ['127.0.0.0/8'] })
  const activities = createActivities({
    db,
    embeddings,
    log,
    secretsKey,
    publicUrl: PUBLIC_URL,
    nodeTestMs: effects.nodeTestMs,
    lightWork,
    slots: effects.slots,
    effects: createEffects({
      db,
      http: effects.http ?? unused,
      mailer: effects.mailer,
      code,
      mailMinute: effects.mailMinute,
      unsubscribeLink: (organization_id, address) =>
        unsubscribeLink(secretsKey, PUBLIC_URL, { organization_id, address }),
      files,
      queryVectors: new QueryVectors(secretsKey, embeddings),
      ...(effects.ratesUrl && { rates: new RateSource(effects.http ?? unused, effects.ratesUrl) }),
    }),
    recordDelay: (ms) => capacity.recordDelay(ms),
    hasAttribute: (name: string) => attributes.has(name),
  })
  const relayId = randomUUID()
  const receivers = createHttp({ allow: ['127.0.0.0/8'] })
  const workers = await createWorkers({
    capacity,
    databasePool: 10,
    deliveries: createDeliver({ db, http: receivers, secretsKey, relayId }),
    files: createFiles({ db, log }),
    connection,
    namespace,
    taskQueue,
    shutdownGraceMs: 10_000,
    interceptors: {},
    stackTraces: effects.stackTraces ?? false,
    dataConverter,
    bundle: effects.bundle ?? (await testBundle(dataConverter)),
    activities: { ...activities, advance: effects.advance?.(activities.advance) ?? activities.advance },
  })
  const linkOf = (approval: ApprovalKey) => approvalLink(secretsKey, PUBLIC_URL, approval)
  const running = Promise.all(workers.map((worker: Worker) => worker.run()))
  const relay = new Relay({
    db,
    client,
    log,
    pollMs: effects.pollMs,
    queues: allQueues({
      db,
      relayId,
      taskQueue,
      log,
      attributes,
      capacity,
      mailer: effects.mailer,
      publicUrl: PUBLIC_URL,
      approvalLink: linkOf,
      secretsKey,
      storage,
      http: receivers,
      openMailbox: createMailboxes({ allow: ['127.0.0.0/8'] }),
    }),
  })
  await relay.start()
  const close = async () => {
    await relay.close()
    for (const worker of workers) worker.shutdown()
    await running
    await receivers.close()
    await embeddings.close()
    await connection.close()
    await code.close()
    await lightWork.close()
  }
  let closed: Promise<void> | undefined
  return {
    client,
    taskQueue,
    connection,
    workers,
    stop: () => {
      closed ??= close()
      return closed
    },
  }
}

/** Saves a workflow; without a name it is "Test". */
export function saveWorkflow(db: Database, organizationId: string, definition: PartialDefinition) {
  const complete = completeDefinition(definition)
  return db.tenant(organizationId, testActor, (tx) =>
    createWorkflow(tx, {
      name: complete.name,
      description: null,
      spec: null,
      definition: complete,
      program: compile(complete),
    }),
  )
}

/** Saves a workflow and queues a run of it. @returns the run's id. */
export async function queueRun(
  db: Database,
  organizationId: string,
  definition: PartialDefinition,
  inputs: Record<string, unknown> = {},
  trigger: RunTrigger = { type: 'api' },
): Promise<string> {
  const { id, name } = await saveWorkflow(db, organizationId, definition)
  return db.tenant(organizationId, testActor, (tx) =>
    createRun(tx, {
      workflow: { id, version: 1, name },
      trigger,
      inputs,
      chain: CHAIN_START,
    }),
  )
}

export interface EndedRun {
  id: string
  status: string
  outputs: Record<string, unknown> | null
  error: { code: string; message: string; node_id?: string } | null
}

/** Polls until the run is in one of `statuses` (default: any end). */
export async function untilRun(
  db: Database,
  id: string,
  statuses: readonly string[] = RUN_END_STATUSES,
  seconds?: number,
): Promise<EndedRun> {
  const row = () => db.system('runs').where({ id }).first()
  return until(
    async () => {
      const run = await row()
      return statuses.includes(run?.status) && run
    },
    async () => `run ${id}, which is ${(await row())?.status}`,
    seconds,
  )
}

export async function historyOf(client: Client, workflowId: string) {
  const history = await client.workflow.getHandle(workflowId).fetchHistory()
  return history.events ?? []
}

/** The statuses of a run's nodes by id, in the order of the definition. */
export async function nodeStatuses(db: Database, runId: string): Promise<Record<string, string>> {
  const rows = await db.system('run_nodes').where({ run_id: runId }).orderBy('position')
  return Object.fromEntries(rows.map((row) => [row.node_id, row.status]))
}

/**
 * The worker of a pool, beside the worker with this task queue: it only makes the calls of the pool. `secretsKey` is
 * the one of the API.
 */
export async function startPoolWorker(
  db: Database,
  taskQueue: string,
  {
    pool,
    http,
    secretsKey = randomBytes(32),
  }: { pool: string; http: HttpClient['call']; secretsKey?: Buffer },
): Promise<Pick<TestWorker, 'stop'>> {
  const connection = await NativeConnection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
  const code = new CodeRunner()
  const files = new FileStore({ storage: diskStorage(filesOf(db)), keys: secretsKey, log: testLog })
  const effects = createEffects({ db, http, code, files })
  const lightWork = new LightWork({ threads: workerThreads })
  const namespace = 'default'
  const worker = await createPoolWorker({
    connection,
    namespace,
    taskQueue,
    pool,
    shutdownGraceMs: 10_000,
    interceptors: {},
    activities: createPoolActivities({
      db,
      log: testLog,
      effects,
      lightWork,
      secretsKey,
      publicUrl: PUBLIC_URL,
      pool,
    }),
  })
  const presence = new PoolPresence({ db, log: testLog, pool, connection, namespace, worker })
  const running = worker.run()
  presence.start()
  const close = async () => {
    await presence.close()
    worker.shutdown()
    await running
    await connection.close()
    await code.close()
    await lightWork.close()
  }
  let closed: Promise<void> | undefined
  return {
    stop: () => {
      closed ??= close()
      return closed
    },
  }
}
