import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { DestinationStream } from 'pino'
import { Compute } from '../../api/compute/compute.ts'
import { readConfig } from '../../api/config.ts'
import { createApp } from '../../api/create-app.ts'
import { KnownWorkflows } from '../../api/http/known-workflows.ts'
import { RunEnds } from '../../api/http/run-ends.ts'
import { SCOPES } from '../../api/http/scopes.ts'
import { createHttpServer } from '../../api/http/server.ts'
import { documentSlots, nodeTestSlots, streamSlots } from '../../api/http/slots.ts'
import { inTurns } from '../../api/http/turns.ts'
import { ClientDocuments } from '../../api/oauth/client-documents.ts'
import { createKey as insertKey, type KeyWithSecret } from '../../db/access/keys.ts'
import { QueryVectors } from '../../db/knowledge/query-vectors.ts'
import { sealing } from '../../db/postgres/connect.ts'
import { Listener } from '../../db/postgres/notify.ts'
import { secretsKey as secretsKeyOf } from '../../db/process/config.ts'
import { createEmbeddings } from '../../db/process/embeddings.ts'
import { createFetchFile } from '../../db/process/fetch-file.ts'
import { createLogger } from '../../db/process/log.ts'
import { LogOutput } from '../../db/process/log-output.ts'
import { createMetrics } from '../../db/process/metrics.ts'
import { allKeys, sealerOf } from '../../db/process/seal.ts'
import { diskStorage } from '../../db/process/storage/disk.ts'
import type { FileStorage } from '../../db/process/storage/storage.ts'
import { QueuedRuns } from '../../db/runs/queued-runs.ts'
import { FileStore } from '../../db/stored-files/store.ts'
import type { Answer } from './answer.ts'
import { createOrganization, filesOf, type TestDatabase, testActor } from './database.ts'
import { assertDeclared } from './declared.ts'
import { noteSecretsOf } from './made-secrets.ts'
import { plantedKey, searchedLog } from './planted.ts'
import { apiThreads } from './threads.ts'

export interface RequestOptions {
  /** Sent as JSON; a string or Buffer as it is. */
  body?: unknown
  headers?: Record<string, string>
  /** Replaces the key of `startApi`; null sends none. */
  key?: string | null
}

/** A running API over a test database, with an organization and a key with every scope. */
export interface TestApi {
  url: string
  organizationId: string
  key: string
  /** The sealing key. Random, unless `env` has SECRETS_KEY. */
  secretsKey: Buffer
  /** Throws if the answer differs from its OpenAPI declaration. */
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>
  close(): Promise<void>
  /** As SIGTERM does. */
  stop(): void
}

/** Another key, of the given organization; default: with every scope. */
export async function createKey(
  db: TestDatabase,
  organizationId: string,
  values: Partial<Parameters<typeof insertKey>[1]> = {},
): Promise<KeyWithSecret> {
  return db.tenant(organizationId, testActor, (tx) =>
    insertKey(tx, { name: 'test', scopes: SCOPES, secret: plantedKey(), ...values }),
  )
}

/**
 * `env` replaces environment variables of the API; `log` is where its log goes, by default a search for secrets;
 * `storage` keeps its files, by default in a folder; null: none.
 */
export async function startApi(
  given: TestDatabase,
  env: Record<string, string> = {},
  log?: DestinationStream,
  storage: FileStorage | null = diskStorage(filesOf(given)),
): Promise<TestApi> {
  const config = readConfig({ DATABASE_URL: given.url, NODE_ENV: 'test', LOG_LEVEL: 'trace', ...env })
  const secretsKey = env.SECRETS_KEY ? secretsKeyOf(config) : randomBytes(32)
  const db = sealing(given, sealerOf(secretsKey))
  const runEnds = new RunEnds(db.system)
  const wake = (ids: string[]) => runEnds.ended(ids)
  const listener = new Listener(db.url, { agx_run_ended: wake, agx_run_changed: wake })
  await listener.start()
  const compute = new Compute(apiThreads)
  const egress = { allow: config.EGRESS_ALLOW, only: config.EGRESS_ONLY }
  const fetchFile = createFetchFile(egress)
  const embeddings = createEmbeddings(egress)
  const stopping = new AbortController()
  const logger = createLogger('api', config.LOG_LEVEL, log ?? searchedLog('api'))
  const app = createApp({
    config,
    db,
    log: logger,
    secretsKey,
    files: new FileStore({ storage: storage ?? undefined, keys: secretsKey, log: logger }),
    runEnds,
    knownWorkflows: new KnownWorkflows(),
    queuedRuns: new QueuedRuns(),
    compute,
    fetchFile,
    clientDocuments: new ClientDocuments(fetchFile),
    queryVectors: new QueryVectors(secretsKey, embeddings),
    streams: streamSlots(),
    nodeTests: nodeTestSlots(),
    documents: documentSlots(),
    stopping: stopping.signal,
    metrics: createMetrics({ db, log: new LogOutput(1), queues: false }),
  })
  const server = createHttpServer(config)
  server.on('request', inTurns(server, app.callback()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const organizationId = await createOrganization(db)
  const { key } = await createKey(db, organizationId)

  return {
    url,
    organizationId,
    key,
    secretsKey: allKeys(secretsKey)[0],
    async request(method, path, options = {}) {
      const bearer = options.key === undefined ? key : options.key
      const raw = typeof options.body === 'string' || options.body instanceof Uint8Array
      const response = await fetch(url + path, {
        method,
        headers: {
          ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}),
          ...(options.body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...options.headers,
        },
        ...(options.body === undefined
          ? {}
          : { body: raw ? (options.body as string) : JSON.stringify(options.body) }),
      })
      const text = await response.text()
      noteSecretsOf(response.headers, text)
      const json = response.headers.get('content-type')?.includes('json')
      const answer = {
        status: response.status,
        headers: response.headers,
        body: json ? JSON.parse(text) : text,
      }
      assertDeclared(method, path, answer)
      return answer
    },
    stop: () => stopping.abort(),
    async close() {
      await listener.close()
      await compute.close()
      await embeddings.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
