import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processIdentity } from './process.ts'

/** A PostgreSQL that runs, or did: by its pid and what tells it from another process that gets the same one. */
export interface Server {
  pid: number
  identity: string
}

/** The one that runs on this folder, whoever started it. */
export function runningServer(dataDir: string): Server | undefined {
  const pid = Number(lockFile(dataDir)[0])
  const identity = pid ? processIdentity(pid) : undefined
  return identity?.includes(dataDir) ? { pid, identity } : undefined
}

/** The lines of postmaster.pid: pid, folder, start, port, …, and the state as the eighth. */
export function lockFile(dataDir: string): string[] {
  try {
    return readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return []
  }
}

/**
 * After kill -9 or a crash of the machine, postmaster.pid may name a process that is somebody else's by now, and
 * PostgreSQL would not start. Its own parent's it passes over. The file stays: by its other lines PostgreSQL sees
 * whether sessions of the killed server are still at work on the data.
 */
export function freeLockFile(dataDir: string): void {
  const file = join(dataDir, 'postmaster.pid')
  const [, ...rest] = lockFile(dataDir)
  if (rest.length > 0) writeFileSync(file, [process.pid, ...rest].join('\n'))
  // Empty, it is of a server that was killed before it had any session.
  else rmSync(file, { force: true })
}
