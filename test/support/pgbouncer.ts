import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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

/** A PgBouncer in front of the server of a database. @returns the database's URL through it. */
export async function startPgBouncer(
  databaseUrl: string,
  mode: 'session' | 'transaction',
): Promise<{ url: string; stop(): Promise<void> }> {
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
  const child = spawn('pgbouncer', [...(isRoot ? ['-u', 'nobody'] : []), file], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  target.host = `127.0.0.1:${port}`
  const { Client } = (await import('pg')).default
  await until(async () => {
    const client = new Client({ connectionString: target.href })
    client.on('error', () => {})
    const connected = await client.connect().then(
      () => true,
      () => undefined,
    )
    await client.end().catch(() => {})
    return connected
  }, 'PgBouncer')
  return {
    url: target.href,
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
