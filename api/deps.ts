import type { QueryVectors } from '../db/knowledge/query-vectors.ts'
import type { Traces } from '../db/model/spans.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { FetchFile } from '../db/process/fetch-file.ts'
import type { Logger } from '../db/process/log.ts'
import type { Metrics } from '../db/process/metrics.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import type { QueuedRuns } from '../db/runs/queued-runs.ts'
import type { FileStore } from '../db/stored-files/store.ts'
import type { Compute } from './compute/compute.ts'
import type { ApiConfig } from './config.ts'
import type { KnownWorkflows } from './http/known-workflows.ts'
import type { RunEnds } from './http/run-ends.ts'
import type { Slots } from './http/slots.ts'
import type { ClientDocuments } from './oauth/client-documents.ts'

/** The dependencies of the API: `main.ts` builds them, `createApp` passes them to every handler. */
export interface AppDeps {
  config: ApiConfig
  db: Database
  log: Logger
  /** Seals and opens secrets at rest. 32 bytes. */
  secretsKey: SecretsKey
  files: FileStore
  /** Wakes the requests that wait for the end of a run. */
  runEnds: RunEnds
  /** Cache of the started workflows, so that the next start need not read them. */
  knownWorkflows: KnownWorkflows
  /** Limits the queued runs of organizations. */
  queuedRuns: QueuedRuns
  /** Limits the streams of run progress. */
  streams: Slots
  /** Limits the requests that wait for the test of a node. */
  nodeTests: Slots
  /** Limits the documents of the knowledge base that are received or fetched. */
  documents: Slots
  /** Runs computations whose cost a tenant controls, without blocking other requests. */
  compute: Compute
  /** Makes the vectors of queries to the knowledge base. */
  queryVectors: QueryVectors
  /** Fetches documents of the knowledge base from URLs. */
  fetchFile: FetchFile
  /** Clients of OAuth that are described by a document. */
  clientDocuments: ClientDocuments
  metrics: Metrics
  /** Absent if traces are not configured. */
  traces?: Traces | undefined
  /** Aborted by SIGTERM: this process must get no further requests. */
  stopping: AbortSignal
}
