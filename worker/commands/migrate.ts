import { bootstrap } from '../../db/access/bootstrap.ts'
import { migrate } from '../../db/migrations/migrate.ts'
import { ConfigError } from '../../db/model/config-error.ts'
import { sqlState } from '../../db/postgres/sql-state.ts'
import {
  bootstrapVariables,
  databaseUrls,
  migrationVariables,
  readVariables,
  sharedVariables,
} from '../../db/process/config.ts'
import { redactText } from '../../workflows/shared/redact.ts'

/**
 * `npm run migrate`: as the owner, migrates the database to the newest schema, creates the logins of api and worker
 * and, if a BOOTSTRAP_ variable is set, creates the first organization. For installations on several machines; `npm
 * start` does the same itself.
 */
try {
  const config = readVariables(
    sharedVariables.extend({ ...bootstrapVariables.shape, ...migrationVariables.shape }),
    process.env,
  )
  const urls = databaseUrls(config)
  const applied = await migrate(config.DATABASE_OWNER_URL ?? urls.url, urls)
  say(applied.length ? `applied ${applied.join(', ')}` : 'nothing to apply')
  if (config.BOOTSTRAP_EMAIL || config.BOOTSTRAP_PASSWORD || config.BOOTSTRAP_API_KEY) {
    const created = await bootstrap(urls, config)
    if (created) say(`created the first organization; its owner is ${created.email}`)
    if (created && !config.BOOTSTRAP_PASSWORD) say(`password (shown once): ${created.password}`)
    if (created && !config.BOOTSTRAP_API_KEY) say(`API key (shown once): ${created.apiKey}`)
  }
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** SQLSTATE, after `lock_timeout`. */
const LOCK_NOT_AVAILABLE = '55P03'

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  const reason = error instanceof AggregateError ? error.errors[0] : error
  if (sqlState(reason) === LOCK_NOT_AVAILABLE)
    return 'the database cannot be migrated: a table is in use by a long transaction; run it again, nothing was changed by this migration'
  return `the database (DATABASE_OWNER_URL, DATABASE_URL) cannot be migrated: ${redactText(reason instanceof Error ? reason.message : String(reason))}`
}
