import type { Logger } from '../../db/log.ts'
import type { Database } from '../../db/postgres/connect.ts'

export interface FilesDeps {
  db: Database
  log: Logger
}
