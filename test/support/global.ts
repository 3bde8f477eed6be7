import { spawn } from 'node:child_process'
import { openSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { findTemporalCli } from '../../worker/dev/temporal-cli.ts'
import { prepareServer, serverArguments } from '../../worker/dev/temporal-server.ts'
import { temporaryFolder } from './folder.ts'
import { loadSharedSecrets } from './made-secrets.ts'
import { assertNoLeaks, searchFolder, searchText } from './planted.ts'
import { quietPort } from './quiet-port.ts'
import { reaper } from './reaper.ts'
import { TEST_DYNAMIC_CONFIG } from './temporal-settings.ts'
import { startTestPostgres } from './test-postgres.ts'

/**
 * Property tests use the same seed in every run, so that a failure comes from the current change. FAST_CHECK_SEED sets
 * another: `FAST_CHECK_SEED=$RANDOM npm test`.
 */
fc.configureGlobal({ seed: Number(process.env.FAST_CHECK_SEED ?? 1) })

const stops: (() => Promise<void>)[] = []
/** Folders of servers of the whole suite, which are searched for planted secrets at its end. */
const searched: string[] = []
let postgresLog: string | undefined

/** Starts PostgreSQL and Temporal once for the suite, unless the environment names running ones. */
export async function mochaGlobalSetup(): Promise<void> {
  process.env.TEST_MADE_SECRETS = join(temporaryFolder(), 'made-secrets')
  await Promise.all([
    process.env.TEST_DATABASE_URL ? undefined : startSuitePostgres(),
    process.env.TEST_TEMPORAL_ADDRESS ? undefined : startTestTemporal(),
  ])
}

export async function mochaGlobalTeardown(): Promise<void> {
  loadSharedSecrets()
  for (const folder of searched) searchFolder(folder)
  if (postgresLog) searchText('the log of PostgreSQL', readFileSync(postgresLog, 'utf8'))
  rmSync(dirname(process.env.TEST_MADE_SECRETS!), { recursive: true })
  await Promise.all(stops.map((stop) => stop()))
  assertNoLeaks()
}

/** After each file where files run in parallel, else at the end. */
export const mochaHooks = { afterAll: assertNoLeaks }

async function startSuitePostgres(): Promise<void> {
  const { url, logFile, stop } = await startTestPostgres()
  postgresLog = logFile
  stops.push(stop)
  process.env.TEST_DATABASE_URL = url
}

async function startTestTemporal(): Promise<void> {
  const progress = (line: string) => process.stdout.write(`${line}\n`)
  const cli = await findTemporalCli({ path: process.env.TEMPORAL_CLI_PATH, env: process.env, progress })
  const folder = temporaryFolder()
  searched.push(folder)
  const port = await quietPort()
  const log = openSync(join(folder, 'temporal.log'), 'a')
  const settings = Object.entries(TEST_DYNAMIC_CONFIG).flatMap(([key, value]) => [
    '--dynamic-config-value',
    `${key}=${value}`,
  ])
  const child = spawn(cli, [...serverArguments({ dbFile: join(folder, 'temporal.db'), port }), ...settings], {
    detached: true,
    stdio: ['ignore', log, log],
  })
  child.unref()
  stops.push(reaper(`kill -KILL ${child.pid}; rm -rf '${folder}'`))
  await prepareServer(`127.0.0.1:${port}`, 'default', 30_000)
  process.env.TEST_TEMPORAL_ADDRESS = `127.0.0.1:${port}`
}
