import type { Database } from '../../db/connect.ts'
import type { Logger } from '../../db/log.ts'

export interface FilesDeps {
  db: Database
  log: Logger
}
