import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { ConfigError } from '../../../db/model/config-error.ts'
import { ensureDatabase } from '../../../db/postgres/ensure-database.ts'
import { DATABASE_ROLES, type DatabaseRole, type DatabaseUrls } from '../../../db/postgres/roles.ts'
import { initialise } from './initdb.ts'
import { type Install, install } from './install.ts'
import { freeLockFile, lockFile, runningServer, type Server } from './lock.ts'
import { processIdentity, waitForExit } from './process.ts'

export interface EmbeddedOptions {
  /** An existing folder for the cluster (`postgres/`) and its port and password (`postgres.json`). */
  dataDir: string
  logFile: string
  /** A fixed port. Default: a free port is chosen once and kept while it stays free. */
  port?: number | undefined
  /** For tests: no durability after a crash of the machine; more connections. */
  fast?: boolean
}

export interface EmbeddedPostgres {
  /** As the owner of the database, a superuser: for migrations. */
  ownerUrl: string
  /** As the logins of api and worker, which `migrate` creates. */
  urls: DatabaseUrls
  port: number
  /** The actual folder of the cluster: a fallback if PostgreSQL's user cannot access `dataDir`. */
  folder: string
  /** Whether it was still running after a killed start. */
  adopted: boolean
  running(): boolean
  /** Ends sessions, writes a checkpoint and stops the server. */
  stop(): Promise<void>
}

/** Ports to try: another program may take a free one before PostgreSQL does. */
const PORTS = 5

/** Starts the PostgreSQL of this data folder, or adopts a running one; creates the cluster on first use. */
export async function startPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const programs = install(join(options.dataDir, 'postgres'))
  const known = readState(options.dataDir)
  const state = { ...newPasswords(), ...(known ?? makeState(options.dataDir)) }
  if (!known || !existsSync(join(programs.dataDir, 'PG_VERSION'))) await initialise(programs, state.password)

  let server = runningServer(programs.dataDir)
  // It may be shutting down after an earlier signal.
  const adopted = server !== undefined && (await waitUntilReady(programs.dataDir, server))
  if (!server || !adopted) {
    server = undefined
    for (let tries = 1; !server; tries++) {
      const port = await freePort(options.port ?? (tries === 1 ? state.port : undefined))
      if (options.port !== undefined && options.port !== port)
        throw new ConfigError(
          `POSTGRES_PORT ${options.port} is in use by another program: stop it, or set POSTGRES_PORT to another port`,
        )
      writeState(options.dataDir, { ...state, port })
      const mayMove = options.port === undefined && tries < PORTS
      server = await launch(programs, port, options, mayMove)
    }
  }
  const { pid, identity } = server
  const port = Number(lockFile(programs.dataDir)[3])
  writeState(options.dataDir, { ...state, port })
  const ownerUrl = urlOf('postgres', state.password, port)
  await ensureDatabase(ownerUrl)
  const [url, systemUrl] = DATABASE_ROLES.map((role) => urlOf(role, state.passwords[role], port))
  return {
    ownerUrl,
    urls: { url: url!, systemUrl: systemUrl! },
    port,
    folder: programs.dataDir,
    adopted,
    running: () => processIdentity(pid) === identity,
    async stop() {
      if (processIdentity(pid) !== identity) return
      process.kill(pid, 'SIGINT')
      if (await waitForExit(pid, identity, 10_000)) return
      process.kill(pid, 'SIGQUIT')
      if (await waitForExit(pid, identity, 5_000)) return
      process.kill(pid, 'SIGKILL')
      await waitForExit(pid, identity, 5_000)
    },
  }
}

/** The logins of the embedded PostgreSQL of a data folder, for a command beside `npm start`; undefined without one. */
export function embeddedUrls(dataDir: string): DatabaseUrls | undefined {
  const { passwords, port } = readState(dataDir) ?? {}
  if (!passwords || !port) return undefined
  const [url, systemUrl] = DATABASE_ROLES.map((role) => urlOf(role, passwords[role], port))
  return { url: url!, systemUrl: systemUrl! }
}

const urlOf = (user: string, password: string, port: number) =>
  `postgres://${user}:${password}@127.0.0.1:${port}/agx`

/** A free TCP port of 127.0.0.1: `wanted` if it is free. */
export function freePort(wanted = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error) => (wanted ? resolve(freePort()) : reject(error)))
    server.listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

/** What postgres.json keeps beside the cluster. */
interface ServerState {
  /** Password of the superuser. */
  password: string
  /** Passwords of the processes' logins. Absent in a folder of an earlier version. */
  passwords?: Record<DatabaseRole, string>
  port?: number
}

function readState(dataDir: string): ServerState | undefined {
  const file = join(dataDir, 'postgres.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ServerState) : undefined
}

function makeState(dataDir: string): ServerState {
  if (existsSync(join(dataDir, 'postgres', 'PG_VERSION')))
    throw new Error(
      `DATA_DIR ${dataDir} contains a database but no postgres.json with its password: restore that file`,
    )
  const state = { password: newPassword() }
  writeState(dataDir, state)
  return state
}

const newPassword = () => randomBytes(24).toString('base64url')
const newPasswords = () => ({ passwords: { agx_app: newPassword(), agx_system: newPassword() } })

function writeState(dataDir: string, state: ServerState): void {
  writeFileSync(join(dataDir, 'postgres.json'), `${JSON.stringify(state)}\n`, { mode: 0o600 })
}

function spawnServer({ postgres, dataDir, runAs }: Install, port: number, options: EmbeddedOptions): Server {
  const flags = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    ...(options.fast && {
      fsync: 'off',
      full_page_writes: 'off',
      synchronous_commit: 'off',
      max_connections: 300,
    }),
  }
  const log = openSync(options.logFile, 'a')
  try {
    const child = spawn(
      postgres,
      ['-D', dataDir, '-p', String(port), ...Object.entries(flags).flatMap(([k, v]) => ['-c', `${k}=${v}`])],
      // A separate process group: Ctrl-C in the terminal reaches only us, and we stop the server last.
      { ...runAs, cwd: '/', detached: true, stdio: ['ignore', log, log] },
    )
    if (!child.pid) throw new Error(`PostgreSQL did not start: ${postgres} cannot be run`)
    child.unref()
    // A server that refuses to start may have ended by now: its log says why.
    return { pid: child.pid, identity: processIdentity(child.pid) ?? ENDED }
  } finally {
    closeSync(log)
  }
}

/** The identity of no process. */
const ENDED = ''

/**
 * Starts the server and waits until it is ready. Retries while sessions of a killed server are still ending.
 * @returns undefined if another program has taken the port since it was free, and the server `mayMove` to another.
 */
async function launch(
  programs: Install,
  port: number,
  options: EmbeddedOptions,
  mayMove: boolean,
): Promise<Server | undefined> {
  const deadline = Date.now() + 30_000
  for (;;) {
    freeLockFile(programs.dataDir)
    const before = existsSync(options.logFile) ? statSync(options.logFile).size : 0
    const server = spawnServer(programs, port, options)
    if (await waitUntilReady(programs.dataDir, server)) return server
    const log = readFileSync(options.logFile).subarray(before).toString()
    if (mayMove && log.includes('could not bind')) return undefined
    const waits = log.includes('pre-existing shared memory block') && Date.now() < deadline
    if (!waits) throw new Error(`PostgreSQL did not start: ${problemIn(log) ?? `see ${options.logFile}`}`)
    await setTimeout(100)
  }
}

/** False if the server ends, or is not ready within a minute. */
async function waitUntilReady(dataDir: string, { pid, identity }: Server): Promise<boolean> {
  const deadline = Date.now() + 60_000
  while (processIdentity(pid) === identity && Date.now() < deadline) {
    const lines = lockFile(dataDir)
    if (lines[0] === String(pid) && lines[7]?.trim() === 'ready') return true
    await setTimeout(20)
  }
  return false
}

/** The last error in the server's log, except those of sessions of a killed server. */
const problemIn = (log: string): string | undefined =>
  log
    .split('\n')
    .findLast(
      (line) => /FATAL|ERROR|LOG: {2}could not/.test(line) && !line.includes('unexpected postmaster exit'),
    )
