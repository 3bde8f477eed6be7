import { setTimeout } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { NativeConnection, NativeConnectionOptions } from '@temporalio/worker'
import type { Logger } from '../db/process/log.ts'

/** The interval at which the files of the credentials are read again. */
const LOOK_MS = 30_000

interface Watch {
  connection: Pick<NativeConnection, 'setApiKey'>
  /** The options of the connection. */
  used: NativeConnectionOptions
  /** Reads the files again. */
  load: () => NativeConnectionOptions
  log: Logger
  stopping: AbortSignal
  lookMs?: number
}

/**
 * Lets credentials of Temporal be rotated without a restart of the process: those that stand in files, which are the
 * certificates (TEMPORAL_TLS_…_PATH) and the API key of a profile (TEMPORAL_CONFIG_FILE). A new API key is used at once,
 * on the same connection. A connection keeps its certificates, so another one begins: this resolves. Variables of a
 * process never change; a new value of TEMPORAL_API_KEY needs a restart.
 */
export async function watchCredentials(watch: Watch): Promise<void> {
  const { connection, load, log, stopping, lookMs = LOOK_MS } = watch
  let { apiKey, ...certificates } = watch.used
  /** As the last look found them: a file may be read while others are still to be replaced. */
  let last = watch.used
  while (!stopping.aborted) {
    await setTimeout(lookMs, undefined, { signal: stopping, ref: false }).catch(() => {})
    if (stopping.aborted) return
    try {
      const found = load()
      const settled = isDeepStrictEqual(found, last)
      last = found
      if (!settled) continue
      const { apiKey: newKey, ...others } = found
      if (!isDeepStrictEqual(others, certificates)) {
        log.info('the settings of the connection to Temporal have changed: it begins again')
        return
      }
      if (newKey === apiKey || typeof newKey !== 'string') continue
      await connection.setApiKey(newKey)
      apiKey = newKey
      log.info('the API key of Temporal has changed')
    } catch (err) {
      log.warn({ err }, 'the credentials of Temporal could not be read again; the old ones stay')
    }
  }
}
