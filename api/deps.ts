import type { Logger } from '../db/log.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Compute } from './compute/compute.ts'
import type { ApiConfig } from './config.ts'
import type { RunEnds } from './http/run-ends.ts'

/** What the API is made of: built by `main.ts`, handed to `createApp` and from there to every handler. */
export interface AppDeps {
  config: ApiConfig
  db: Database
  log: Logger
  /** Seals and opens secrets at rest. 32 bytes. */
  secretsKey: Buffer
  /** Tells when a run that someone waits for has ended. */
  runEnds: RunEnds
  /** Computes what a tenant chooses without holding up others. */
  compute: Compute
}
