import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { findTemporalCli } from '../../worker/dev/temporal-cli.ts'
import { prepareServer, serverArguments } from '../../worker/dev/temporal-server.ts'
import { memoryFolder } from './folder.ts'
import { quietPort } from './quiet-port.ts'
import { reaper } from './reaper.ts'
import { TEST_DYNAMIC_CONFIG } from './temporal-settings.ts'

/** A development server of Temporal for one test, or for the suite. */
export interface OwnTemporal {
  address: string
  folder: string
  /** Copies its database at one moment, as a file-system snapshot does. */
  copy(): void
  /** Kills it, and starts it again with its copy; without one, with an empty database. */
  restore(): Promise<void>
  stop(): Promise<void>
}

export async function startOwnTemporal(): Promise<OwnTemporal> {
  const progress = (line: string) => process.stdout.write(`${line}\n`)
  const cli = await findTemporalCli({ path: process.env.TEMPORAL_CLI_PATH, env: process.env, progress })
  const folder = memoryFolder()
  const port = await quietPort()
  const address = `127.0.0.1:${port}`
  const removeFolder = reaper(`sleep 0.1; rm -rf '${folder}'`)
  let server = await startServer(cli, folder, port)
  return {
    address,
    folder,
    copy() {
      process.kill(server.pid, 'SIGSTOP')
      for (const file of filesOf(folder)) cpSync(file, `${file}.copy`)
      process.kill(server.pid, 'SIGCONT')
    },
    async restore() {
      await server.kill()
      for (const file of filesOf(folder)) rmSync(file)
      for (const file of filesOf(folder, '.copy')) renameSync(file, file.replace('.copy', ''))
      server = await startServer(cli, folder, port)
    },
    async stop() {
      await server.kill()
      await removeFolder()
    },
  }
}

async function startServer(cli: string, folder: string, port: number) {
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
  const pid = child.pid!
  const kill = reaper(`kill -KILL ${pid}`)
  await prepareServer(`127.0.0.1:${port}`, 'default', 120_000)
  return { pid, kill }
}

/** The files of the database, or of its copy. */
const filesOf = (folder: string, suffix = '') =>
  ['', '-wal', '-shm']
    .map((part) => `${databaseOf(folder)}${part}${suffix}`)
    .filter((file) => existsSync(file))

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
