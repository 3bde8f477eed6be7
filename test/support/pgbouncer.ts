import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { temporaryFolder } from './folder.ts'
import { quietPort } from './quiet-port.ts'
import { until } from './until.ts'

/** Whether PgBouncer is installed: it is in no package registry of npm. */
export function hasPgBouncer(): boolean {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export interface PgBouncer {
  /** The database's URL through it. */
  url: string
  /** Kills it, which ends all connections, and starts it again. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** A PgBouncer in front of the server of a database. */
export async function startPgBouncer(
  databaseUrl: string,
  mode: 'session' | 'transaction',
): Promise<PgBouncer> {
  const target = new URL(databaseUrl)
  const { username, password, hostname, port: serverPort, pathname } = target
  const folder = temporaryFolder()
  const port = await quietPort()
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    [
      '[databases]',
      `${pathname.slice(1)} = host=${hostname} port=${serverPort}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1`,
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = plain',
      `auth_file = ${users}`,
      `pool_mode = ${mode}`,
      // In session mode each connection of an api and a worker needs one of the server.
      'default_pool_size = 100',
      'max_client_conn = 400',
      'ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout,extra_float_digits',
    ].join('\n'),
  )
  const isRoot = process.getuid?.() === 0
  // It refuses to run as root.
  for (const [path, bits] of [
    [folder, 0o755],
    [users, 0o644],
    [file, 0o644],
  ] as const)
    chmodSync(path, bits)
  target.host = `127.0.0.1:${port}`
  const start = async () => {
    const child = spawn('pgbouncer', [...(isRoot ? ['-u', 'nobody'] : []), file], { stdio: 'ignore' })
    const ended = once(child, 'exit')
    await until(() => connects(target.href), 'PgBouncer')
    return async () => {
      child.kill('SIGKILL')
      await ended
    }
  }
  let stop = await start()
  return {
    url: target.href,
    async restart() {
      await stop()
      stop = await start()
    },
    stop: () => stop(),
  }
}

async function connects(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    return true
  } finally {
    await client.end().catch(() => {})
  }
}
