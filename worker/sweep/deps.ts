import type { Client } from '@temporalio/client'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'

export interface CheckDeps {
  db: Database
  client: Client
  log: Logger
}

export interface SweepDeps extends CheckDeps {
  taskQueue: string
  /** Whether there is time left and this process is still elected. Asked between batches. */
  keepOn(): Promise<boolean>
}

/** Rows per batch. */
export const BATCH = 200
