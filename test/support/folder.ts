import { chmodSync, mkdtempSync, statfsSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder for the PostgreSQL of a test. If root runs it, PostgreSQL runs as another user, who needs access. */
export const temporaryFolder = (): string => folderIn(tmpdir())

/**
 * The same, in memory where there is plenty, for data of the suite's servers. Each database of a test is 900 files, which
 * live for seconds: for ext4 to find an inode that no file had lately took a third of PostgreSQL's CPU time.
 */
export const memoryFolder = (): string => folderIn(hasRoom(MEMORY) ? MEMORY : tmpdir())

const MEMORY = '/dev/shm'
const ROOM_BYTES = 8 * 1024 ** 3

function hasRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    return Math.min(bavail * bsize, freemem()) > ROOM_BYTES
  } catch {
    return false
  }
}

function folderIn(parent: string): string {
  const folder = mkdtempSync(join(parent, 'agx-test-'))
  chmodSync(folder, 0o755)
  return folder
}
