import { bootstrap } from '../access/bootstrap.ts'
import { bootstrapSettings, ConfigError, readSettings, sharedSettings } from '../config.ts'
import { redactText } from '../log.ts'
import { migrate } from './migrate.ts'

/**
 * `npm run migrate`: brings the database of DATABASE_URL to the newest schema and, where a BOOTSTRAP_ setting asks for
 * it, makes the first organization. For installations of several machines; `npm start` does the same by itself.
 */
try {
  const config = readSettings(sharedSettings.extend(bootstrapSettings.shape), process.env)
  const applied = await migrate(config.DATABASE_URL)
  say(applied.length ? `applied ${applied.join(', ')}` : 'nothing to apply')
  if (config.BOOTSTRAP_EMAIL || config.BOOTSTRAP_PASSWORD || config.BOOTSTRAP_API_KEY) {
    const made = await bootstrap(config.DATABASE_URL, config)
    if (made) say(`made the first organization; its owner is ${made.email}`)
    if (made && !config.BOOTSTRAP_PASSWORD) say(`password (shown once): ${made.password}`)
    if (made && !config.BOOTSTRAP_API_KEY) say(`API key (shown once): ${made.apiKey}`)
  }
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  const reason = error instanceof AggregateError ? error.errors[0] : error
  return `DATABASE_URL cannot be migrated: ${redactText(reason instanceof Error ? reason.message : String(reason))}`
}
