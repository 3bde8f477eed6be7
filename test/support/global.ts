import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolder } from './folder.ts'
import { loadSharedSecrets } from './made-secrets.ts'
import { startOwnTemporal } from './own-temporal.ts'
import { assertNoLeaks, searchFolder, searchText } from './planted.ts'
import { startTestPostgres } from './test-postgres.ts'

/**
 * Property tests use the same seed in every run, so that a failure comes from the current change. FAST_CHECK_SEED sets
 * another: `FAST_CHECK_SEED=$RANDOM npm test`.
 */
fc.configureGlobal({ seed: Number(process.env.FAST_CHECK_SEED ?? 1) })

// Each thread of the tests pipes into them, with a listener: Node would warn of a leak at the eleventh.
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(100)

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
  const { address, folder, stop } = await startOwnTemporal()
  searched.push(folder)
  stops.push(stop)
  process.env.TEST_TEMPORAL_ADDRESS = address
}
