import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { install } from '../../worker/dev/postgres/install.ts'
import { temporaryFolder } from './folder.ts'
import { quietPort } from './quiet-port.ts'
import { reaper } from './reaper.ts'
import { until } from './until.ts'

/**
 * The folder of an installed PostgreSQL's programs, newest version first; undefined if none has all of them. The embedded
 * one has no `pg_dump`.
 */
export function installedPostgres(): string | undefined {
  const versions = '/usr/lib/postgresql'
  const folders = existsSync(versions)
    ? readdirSync(versions)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(versions, version, 'bin'))
    : []
  return folders.find((folder) =>
    ['initdb', 'postgres', 'pg_dump', 'pg_restore'].every((program) => existsSync(join(folder, program))),
  )
}

/** The variables with the logins of api and worker on an owner's database, which `migrate` creates. */
export function loginsOf(owner: string): Record<'DATABASE_URL' | 'DATABASE_SYSTEM_URL', string> {
  const login = (role: string) => {
    const url = new URL(owner)
    url.username = role
    url.password = randomBytes(12).toString('hex')
    return url.href
  }
  return { DATABASE_URL: login('agx_app'), DATABASE_SYSTEM_URL: login('agx_system') }
}

/** A new cluster of an installed PostgreSQL, with the empty database `agx`. @returns the URL of its owner. */
export async function startInstalledPostgres(
  programs: string,
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = temporaryFolder()
  // Only for the user that PostgreSQL runs as.
  const { runAs, dataDir } = install(join(folder, 'postgres'))
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const passwordFile = join(folder, 'password')
  const password = randomBytes(24).toString('base64url')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (runAs.uid !== undefined && runAs.gid !== undefined)
    for (const path of [dataDir, passwordFile]) chownSync(path, runAs.uid, runAs.gid)
  execFileSync(
    join(programs, 'initdb'),
    [
      `--pgdata=${dataDir}`,
      '--username=postgres',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '--encoding=UTF8',
      '--locale=C.UTF-8',
      '--no-sync',
    ],
    { ...runAs, cwd: '/', stdio: 'pipe' },
  )
  const port = await quietPort()
  const log = openSync(join(folder, 'postgres.log'), 'a')
  const flags = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
    // As of the suite's embedded server.
    max_connections: '300',
  }
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', dataDir, '-p', String(port), ...Object.entries(flags).flatMap(([k, v]) => ['-c', `${k}=${v}`])],
    { ...runAs, cwd: '/', detached: true, stdio: ['ignore', log, log] },
  )
  server.unref()
  const stop = reaper(`kill -QUIT ${server.pid}; sleep 0.2; rm -rf '${dataDir}' '${folder}'`)
  const urlOf = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`
  await until(async () => {
    const client = new pg.Client({ connectionString: urlOf('postgres') })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('create database agx')
      return true
    } catch {
      return undefined
    } finally {
      await client.end().catch(() => {})
    }
  }, 'PostgreSQL')
  return { url: urlOf('agx'), stop }
}
