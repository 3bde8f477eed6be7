import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { z } from 'zod'
import { ConfigError } from '../../model/config-error.ts'
import type { sharedVariables } from '../config.ts'
import type { Logger } from '../log.ts'
import { diskStorage } from './disk.ts'
import { s3Storage } from './s3.ts'
import type { FileStorage } from './storage.ts'

type StorageConfig = Pick<
  z.output<typeof sharedVariables>,
  'NODE_ENV' | 'DATA_DIR' | 'FILES_DIR' | 'FILES_S3_BUCKET' | 'FILES_S3_ENDPOINT' | 'FILES_S3_REGION'
>

/** The storage of files. Undefined in production without a setting: a folder that nobody chose may be lost. */
export async function createStorage(config: StorageConfig): Promise<FileStorage | undefined> {
  const { FILES_S3_BUCKET: bucket, FILES_S3_REGION: region, FILES_S3_ENDPOINT: endpoint } = config
  if (bucket) return s3Storage({ bucket, region, endpoint })
  if (config.FILES_DIR) return diskStorage(config.FILES_DIR)
  return config.NODE_ENV === 'production' ? undefined : diskStorage(join(config.DATA_DIR, 'files'))
}

/** Reports wrong settings at start. A storage that is away, or does not answer, may come back. Throws ConfigError. */
export async function requireStorage(storage: FileStorage | undefined, log: Logger): Promise<void> {
  if (!storage) return
  const ended = new AbortController()
  const late = pause(CHECK_MS, undefined, { signal: ended.signal, ref: false }).then(() => {
    throw new Error(`no answer within ${CHECK_MS} ms`)
  })
  try {
    await Promise.race([storage.check(), late])
  } catch (error) {
    if (error instanceof ConfigError) throw error
    log.warn({ err: error }, 'the storage of files is not available')
  } finally {
    ended.abort()
    late.catch(() => {})
  }
}

const CHECK_MS = 5_000
