import { createLogger } from '../../db/process/log.ts'
import { FileStore } from '../../db/stored-files/store.ts'

/** The files of a service without a storage. */
export const noFiles = () =>
  new FileStore({ storage: undefined, keys: Buffer.alloc(32), log: createLogger('api', 'silent') })
