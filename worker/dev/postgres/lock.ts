import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processIdentity } from './process.ts'

/** A PostgreSQL process; `identity` distinguishes it from a later process with the same pid. */
export interface Server {
  pid: number
  identity: string
}

/** The server that runs on this folder, if any. */
export function runningServer(dataDir: string): Server | undefined {
  const pid = Number(lockFile(dataDir)[0])
  const identity = pid ? processIdentity(pid) : undefined
  return identity?.includes(dataDir) ? { pid, identity } : undefined
}

/** The lines of postmaster.pid: pid, folder, start time, port, …; the eighth is the state. */
export function lockFile(dataDir: string): string[] {
  try {
    return readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return []
  }
}

/**
 * After kill -9 or a crash of the machine, postmaster.pid may contain a pid that now belongs to another process, and
 * PostgreSQL would not start. It ignores the pid of its own parent, so we write ours. The other lines stay: with them
 * PostgreSQL detects sessions of the killed server that still use the data.
 */
export function freeLockFile(dataDir: string): void {
  const file = join(dataDir, 'postmaster.pid')
  const [, ...rest] = lockFile(dataDir)
  if (rest.length > 0) writeFileSync(file, [process.pid, ...rest].join('\n'))
  // An empty file: its server was killed before it had a session.
  else rmSync(file, { force: true })
}
