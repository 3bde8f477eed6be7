import { execFileSync, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { findTemporalCli } from '../../worker/dev/temporal-cli.ts'
import { prepareServer, serverArguments } from '../../worker/dev/temporal-server.ts'
import { temporaryFolder } from './folder.ts'
import { quietPort } from './quiet-port.ts'
import { reaper } from './reaper.ts'
import { TEST_DYNAMIC_CONFIG } from './temporal-settings.ts'

/** A development server of Temporal for one test, or for the suite. */
export interface OwnTemporal {
  address: string
  folder: string
  stop(): Promise<void>
}

export async function startOwnTemporal(): Promise<OwnTemporal> {
  const progress = (line: string) => process.stdout.write(`${line}\n`)
  const cli = await findTemporalCli({ path: process.env.TEMPORAL_CLI_PATH, env: process.env, progress })
  const folder = temporaryFolder()
  const port = await quietPort()
  const log = openSync(join(folder, 'temporal.log'), 'a')
  const settings = Object.entries(TEST_DYNAMIC_CONFIG).flatMap(([key, value]) => [
    '--dynamic-config-value',
    `${key}=${value}`,
  ])
  const child = spawn(cli, [...serverArguments({ dbFile: databaseOf(folder), port }), ...settings], {
    detached: true,
    stdio: ['ignore', log, log],
  })
  child.unref()
  const stop = reaper(`kill -KILL ${child.pid}; rm -rf '${folder}'`)
  const address = `127.0.0.1:${port}`
  await prepareServer(address, 'default', 30_000)
  return { address, folder, stop }
}

const databaseOf = (folder: string) => join(folder, 'temporal.db')

/**
 * Makes every read of a workflow fail in the database of the running server, which still responds to all other
 * requests.
 */
export const breakDatabase = ({ folder }: OwnTemporal): void =>
  alter(folder, 'alter table current_executions rename to away')

export const mendDatabase = ({ folder }: OwnTemporal): void =>
  alter(folder, 'alter table away rename to current_executions')

/** By Python: Node.js 20 has no SQLite. */
function alter(folder: string, statement: string): void {
  const script = 'import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=10).execute(sys.argv[2])'
  execFileSync('python3', ['-c', script, databaseOf(folder), statement])
}
