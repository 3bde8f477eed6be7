import { type DestinationStream, type Logger, pino } from 'pino'
import { maskSecrets } from '../workflows/secret-names.ts'

export type { Logger }

/** Levels of a logged object that are searched for members with secret names. */
const DEPTH = 3
const masked = (logged: Record<string, unknown>) => maskSecrets(logged, DEPTH) as Record<string, unknown>

/** Text that looks like one of our keys or webhook secrets, wherever it occurs. */
const SECRET_TEXT = /\b(agx_|whsec_)[A-Za-z0-9+/=]{8,}|(:\/\/[^:/\s]+:)[^@/\s]+@/g

export const redactText = (text: string) =>
  text.replace(SECRET_TEXT, (_, prefix: string | undefined, credentials: string | undefined) =>
    prefix ? `${prefix}[redacted]` : `${credentials}[redacted]@`,
  )

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
