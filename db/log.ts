import { type Logger, pino } from 'pino'

export type { Logger }

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

/** Text that looks like one of our keys or webhook secrets, wherever it occurs. */
const SECRET_TEXT = /\b(agx_|whsec_)[A-Za-z0-9+/=]{8,}|(:\/\/[^:/\s]+:)[^@/\s]+@/g

export const redactText = (text: string) =>
  text.replace(SECRET_TEXT, (_, prefix: string | undefined, credentials: string | undefined) =>
    prefix ? `${prefix}[redacted]` : `${credentials}[redacted]@`,
  )

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
