import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { freePort, startPostgres } from '../../db/postgres/embedded/server.ts'
import { findTemporalCli } from '../../worker/dev/temporal-cli.ts'
import { prepareServer, serverArguments } from '../../worker/dev/temporal-server.ts'
import { temporaryFolder } from './folder.ts'
import { reaper } from './reaper.ts'

/**
 * Property tests use the same seed in every run, so that a failure comes from the current change. FAST_CHECK_SEED sets
 * another: `FAST_CHECK_SEED=$RANDOM npm test`.
 */
fc.configureGlobal({ seed: Number(process.env.FAST_CHECK_SEED ?? 1) })

const stops: (() => Promise<void>)[] = []

/** Starts PostgreSQL and Temporal once for the suite, unless the environment names running ones. */
export async function mochaGlobalSetup(): Promise<void> {
  await Promise.all([
    process.env.TEST_DATABASE_URL ? undefined : startTestPostgres(),
    process.env.TEST_TEMPORAL_ADDRESS ? undefined : startTestTemporal(),
  ])
}

export async function mochaGlobalTeardown(): Promise<void> {
  await Promise.all(stops.map((stop) => stop()))
}

async function startTestPostgres(): Promise<void> {
  const folder = temporaryFolder()
  const server = await startPostgres({ dataDir: folder, logFile: join(folder, 'postgres.log'), fast: true })
  // Its data is not kept, so it needs no clean shutdown.
  const pidFile = join(server.folder, 'postmaster.pid')
  stops.push(reaper(`kill -QUIT $(head -n 1 '${pidFile}'); sleep 0.2; rm -rf '${server.folder}' '${folder}'`))
  process.env.TEST_DATABASE_URL = server.url
}

async function startTestTemporal(): Promise<void> {
  const progress = (line: string) => process.stdout.write(`${line}\n`)
  const cli = await findTemporalCli({ path: process.env.TEMPORAL_CLI_PATH, env: process.env, progress })
  const folder = temporaryFolder()
  const port = await freePort()
  const log = openSync(join(folder, 'temporal.log'), 'a')
  // Temporal suggests to continue as new from 4,096 events, which take a test half a minute.
  const sooner = ['--dynamic-config-value', 'limit.historyCount.suggestContinueAsNew=1000']
  const child = spawn(cli, [...serverArguments({ dbFile: join(folder, 'temporal.db'), port }), ...sooner], {
    detached: true,
    stdio: ['ignore', log, log],
  })
  child.unref()
  stops.push(reaper(`kill -KILL ${child.pid}; rm -rf '${folder}'`))
  await prepareServer(`127.0.0.1:${port}`, 'default', 30_000)
  process.env.TEST_TEMPORAL_ADDRESS = `127.0.0.1:${port}`
}
