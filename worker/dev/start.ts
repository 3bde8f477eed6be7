import { once } from 'node:events'
import { bootstrap } from '../../db/access/bootstrap.ts'
import { ConfigError } from '../../db/config.ts'
import { migrate } from '../../db/postgres/migrate.ts'
import { box } from './box.ts'
import { checkDatabase, checkDataDir, checkPort, checkTemporal } from './checks.ts'
import { readConfig } from './config.ts'
import { ProcessRecord } from './leftovers.ts'
import { type Stack, startEmbeddedPostgres, startEmbeddedTemporal, startProcess } from './parts.ts'
import { announced, say } from './say.ts'
import { findTemporalCli } from './temporal-cli.ts'

/**
 * `npm start`: the whole stack on one machine. PostgreSQL and Temporal (unless the environment names running ones),
 * migrations, a demo organization on the first start, then the API and the worker, each a process with a log of its
 * own. It starts again what falls over, and stops everything, last first, when it is told to end.
 */
const stopping = new AbortController()
// npm passes on the Ctrl-C that we got from the terminal too: the second must not cut the first's work short.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopping.abort())
// A SIGTERM for npm ends only npm and the shell between us: under npm, losing the parent is being told to end.
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

/** Everything that can be wrong with the settings is found here, before anything is started. */
async function prepare(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Stack> {
  const config = readConfig(env)
  checkDataDir(config.DATA_DIR)
  const record = new ProcessRecord(config.DATA_DIR)
  const ended = await record.takeOver()
  if (ended.length) say(`ended what a killed start had left: ${ended.join(', ')}`)
  await checkPort('PORT', config.PORT, config.HOST)
  await checkPort('WORKER_PORT', config.WORKER_PORT, config.HOST)
  if (config.TEMPORAL_ADDRESS) await checkTemporal(config.TEMPORAL_ADDRESS, config.TEMPORAL_NAMESPACE)
  else {
    await checkPort('TEMPORAL_PORT', config.TEMPORAL_PORT, '127.0.0.1')
    await checkPort('TEMPORAL_UI_PORT', config.TEMPORAL_UI_PORT, '127.0.0.1')
  }
  if (config.DATABASE_URL) await checkDatabase(config.DATABASE_URL)
  const temporalCli = config.TEMPORAL_ADDRESS
    ? undefined
    : await findTemporalCli({ path: config.TEMPORAL_CLI_PATH, env, progress: say, signal })
  return { config, env, record, temporalCli, parts: [], signal }
}

/** @returns the box to print. */
async function start(stack: Stack): Promise<string> {
  const { config, env, temporalCli, signal } = stack
  const postgres = (async () => {
    const url = config.DATABASE_URL ?? (await startEmbeddedPostgres(stack))
    await announced('migrating the database', migrate(url))
    return url
  })()
  const temporal = temporalCli ? startEmbeddedTemporal(stack, temporalCli) : config.TEMPORAL_ADDRESS!
  // Both have to settle, even when one fails: what was started must be known to be stopped.
  const settled = await Promise.allSettled([postgres, temporal])
  for (const result of settled) if (result.status === 'rejected') throw result.reason
  const [url, address] = await Promise.all([postgres, temporal])
  signal.throwIfAborted()

  const apiUrl = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`
  const temporalUiUrl =
    config.TEMPORAL_UI_URL ??
    (config.TEMPORAL_ADDRESS ? undefined : `http://localhost:${config.TEMPORAL_UI_PORT}`)
  const childEnv = {
    ...withoutBootstrap(env),
    DATA_DIR: config.DATA_DIR,
    DATABASE_URL: url,
    TEMPORAL_ADDRESS: address,
    PUBLIC_URL: apiUrl,
    ...(temporalUiUrl && { TEMPORAL_UI_URL: temporalUiUrl }),
    TZ: 'UTC',
  }
  const started = await Promise.allSettled([
    startProcess(stack, 'worker', config.WORKER_PORT, childEnv),
    startProcess(stack, 'api', config.PORT, childEnv),
  ])
  for (const result of started) if (result.status === 'rejected') throw result.reason
  // Last, so that its secrets are never made without being shown.
  const made = await bootstrap(url, config)
  return box({ apiUrl, temporalUiUrl, dataDir: config.DATA_DIR, made })
}

/** The processes that serve have no use for the first secrets. */
function withoutBootstrap(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('BOOTSTRAP_')))
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  return `agx could not start: ${error instanceof Error ? error.message : String(error)}`
}
