import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'

export interface FilesDeps {
  db: Database
  log: Logger
}
