import { once } from 'node:events'
import { bootstrap } from '../../db/access/bootstrap.ts'
import { migrate } from '../../db/migrations/migrate.ts'
import { ConfigError } from '../../db/model/config-error.ts'
import { databaseUrls } from '../../db/process/config.ts'
import { box } from './box.ts'
import type { StartConfig } from './config.ts'
import { type Stack, startEmbeddedPostgres, startEmbeddedTemporal, startProcess } from './parts.ts'
import { prepare } from './prepare.ts'
import { announced, say } from './say.ts'

/**
 * `npm start`: the whole stack on one machine. Starts PostgreSQL and Temporal (unless the environment names running
 * ones), migrates, creates a demo organization on the first start, then starts the API and the worker; each process has
 * its own log. Restarts processes that end. On a signal, stops everything in reverse order.
 */
const stopping = new AbortController()
// npm forwards a Ctrl-C that the terminal also sent to us: the second signal must not interrupt the shutdown.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopping.abort())
// A killed npm cannot tell us: under npm, a lost parent means that we must stop.
const parent = process.ppid
const orphaned = () => process.env.npm_lifecycle_event !== undefined && process.ppid !== parent
setInterval(() => orphaned() && stopping.abort(), 500).unref()

let stack: Stack | undefined
try {
  stack = await prepare(process.env, stopping.signal)
  say(await start(stack))
  if (!stopping.signal.aborted) await once(stopping.signal, 'abort')
} catch (error) {
  if (!stopping.signal.aborted) {
    process.stderr.write(`${explain(error)}\n`)
    process.exitCode = 1
  }
}
if (stack) {
  if (stopping.signal.aborted) say('stopping')
  for (const part of stack.parts.reverse()) await part.stop()
  stack.record.clear()
}
process.exit()

/** @returns the box to print. */
async function start(stack: Stack): Promise<string> {
  const { config, env, temporalCli, signal } = stack
  const postgres = (async () => {
    const { ownerUrl, urls } = config.DATABASE_URL
      ? external({ ...config, DATABASE_URL: config.DATABASE_URL })
      : await startEmbeddedPostgres(stack)
    await announced('migrating the database', migrate(ownerUrl, urls))
    return urls
  })()
  const temporal = temporalCli ? startEmbeddedTemporal(stack, temporalCli) : config.TEMPORAL_ADDRESS!
  // Wait for both even if one fails: a part must be registered before it can be stopped.
  const settled = await Promise.allSettled([postgres, temporal])
  for (const result of settled) if (result.status === 'rejected') throw result.reason
  const [urls, address] = await Promise.all([postgres, temporal])
  signal.throwIfAborted()

  const apiUrl = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`
  const temporalUiUrl =
    config.TEMPORAL_UI_URL ??
    (config.TEMPORAL_ADDRESS ? undefined : `http://localhost:${config.TEMPORAL_UI_PORT}`)
  const childEnv = {
    ...withoutInitialSecrets(env),
    DATA_DIR: config.DATA_DIR,
    DATABASE_URL: urls.url,
    ...(urls.systemUrl && { DATABASE_SYSTEM_URL: urls.systemUrl }),
    TEMPORAL_ADDRESS: address,
    // Both are embedded, hence of one DATA_DIR: if Temporal's database was deleted, its runs resume in the new one.
    ...(!config.DATABASE_URL && !config.TEMPORAL_ADDRESS && { TEMPORAL_ADOPT: 'true' }),
    PUBLIC_URL: apiUrl,
    SHUTDOWN_DELAY: String(config.SHUTDOWN_DELAY),
    // The box shows the owner of the first organization.
    ...(config.SIGN_UP === 'first' && { SIGN_UP: 'closed' }),
    ...(temporalUiUrl && { TEMPORAL_UI_URL: temporalUiUrl }),
    TZ: 'UTC',
  }
  const started = await Promise.allSettled([
    startProcess(stack, 'worker', config.WORKER_PORT, childEnv),
    startProcess(stack, 'api', config.PORT, childEnv),
  ])
  for (const result of started) if (result.status === 'rejected') throw result.reason
  // Last, so that secrets are never created without being shown.
  const created = await bootstrap(urls, config)
  return box({ apiUrl, temporalUiUrl, dataDir: config.DATA_DIR, created })
}

/** The logins of a database that the environment names. */
function external(config: StartConfig & { DATABASE_URL: string }) {
  const urls = databaseUrls(config)
  return { ownerUrl: config.DATABASE_OWNER_URL ?? urls.url, urls }
}

/** API and worker need neither the initial secrets nor the owner's login; they are given the other logins themselves. */
function withoutInitialSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isInitial = (name: string) =>
    name.startsWith('BOOTSTRAP_') || /^DATABASE_(?:OWNER_URL|\w*URL_FILE)$/.test(name)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isInitial(name)))
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  return `agx could not start: ${error instanceof Error ? error.message : String(error)}`
}
