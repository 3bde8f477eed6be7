import { type DestinationStream, type Logger, pino } from 'pino'
import { redactText } from '../workflows/redact.ts'
import { maskSecrets } from '../workflows/secret-names.ts'

/** Levels of a logged object that are searched for members with secret names. */
const DEPTH = 3
const masked = (logged: Record<string, unknown>) => maskSecrets(logged, DEPTH) as Record<string, unknown>

export type { Logger }
export { redactText }

/**
 * The process's structured log (JSON lines, on stdout by default). `name` is the process: `api`, `worker`. Members with
 * secret names are masked, but in the bindings of `child()`, which are for ids.
 */
export function createLogger(name: string, level: string, stream?: DestinationStream): Logger {
  return pino(
    {
      name,
      level,
      base: { name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: masked },
      hooks: {
        streamWrite: redactText,
      },
    },
    stream ?? pino.destination(1),
  )
}
