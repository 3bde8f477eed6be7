import { type Logger, pino } from 'pino'
import { redactText } from '../workflows/redact.ts'

export type { Logger }
export { redactText }

/** Field names whose values never reach a log, at any of the first three levels of an object. */
const SECRET_FIELDS = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'token',
  'key',
  'api_key',
  'database_url',
  'x-webhook-secret',
]
const quoted = SECRET_FIELDS.map((field) => `["${field}"]`)

/** The process's structured log (JSON lines on stdout). `name` is the process: `api`, `worker`. */
export function createLogger(name: string, level: string): Logger {
  return pino({
    name,
    level,
    base: { name },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: {
      paths: [...quoted, ...quoted.map((q) => `*${q}`), ...quoted.map((q) => `*.*${q}`)],
      censor: '[redacted]',
    },
    hooks: {
      streamWrite: redactText,
    },
  })
}
