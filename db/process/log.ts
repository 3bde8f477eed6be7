import { hostname } from 'node:os'
import { type DestinationStream, type Logger, pino } from 'pino'
import { redactText } from '../../workflows/shared/redact.ts'
import { maskSecrets } from '../../workflows/shared/secret-names.ts'
import { type Build, buildOf } from './build.ts'
import { LogOutput } from './log-output.ts'

/** Number of levels of a logged object in which members with secret names are masked. */
const DEPTH = 3
const masked = (logged: Record<string, unknown>) => maskSecrets(logged, DEPTH) as Record<string, unknown>

export type { Logger }

/**
 * The structured log of the process (JSON lines, on stdout by default). `name`: the process, `api` or `worker`. Each line
 * has it with the host, the pid and the build, so that lines of many processes can be told apart. Members with secret
 * names are masked, except in the bindings of `child()`, which are for ids.
 */
export function createLogger(
  name: string,
  level: string,
  stream: DestinationStream = new LogOutput(1),
  build: Build = buildOf({}),
): Logger {
  const logger = pino(
    {
      name,
      level,
      base: { name, host: hostname(), pid: process.pid, ...build },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: masked },
      hooks: {
        streamWrite: redactText,
      },
    },
    stream,
  )
  if (stream instanceof LogOutput)
    stream.onRecovered = (dropped) =>
      logger.warn({ dropped }, 'log lines were dropped: they could not be written')
  return logger
}

const FLUSH_MS = 500

/** Waits, for a short time at most, until the log is written. For the end of a process. */
export function flushLog(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, FLUSH_MS)
    log.flush(() => resolve())
  })
}
