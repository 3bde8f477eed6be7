import { DefaultLogger, Runtime } from '@temporalio/worker'
import type { Logger } from '../db/process/log.ts'
import { freePort } from './dev/postgres/server.ts'

const LEVELS = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
} as const satisfies Record<string, keyof Logger>

/**
 * Installs the native runtime of Temporal's SDK, once per process: its log goes to ours, and signals are left to us.
 * @returns its metrics, in Prometheus' text format. The SDK serves them itself, on this machine only.
 */
export async function installSdkRuntime(log: Logger): Promise<() => Promise<string>> {
  const bindAddress = `127.0.0.1:${await freePort()}`
  Runtime.install({
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => log[LEVELS[level]](meta ?? {}, message)),
    // We handle signals ourselves: the relay stops before the workers.
    shutdownSignals: [],
    telemetryOptions: {
      metrics: { prometheus: { bindAddress } },
      // Else its native part writes to stdout itself: coloured text without masks.
      logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
    },
  })
  return async () => (await fetch(`http://${bindAddress}/metrics`)).text()
}
