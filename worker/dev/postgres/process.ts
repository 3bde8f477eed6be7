import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Distinguishes a running process from a later one with the same pid: its start time and command line. The command line
 * of a process that is exiting is empty. Undefined if no such process runs (or neither /proc nor `ps` is available).
 */
export function processIdentity(pid: number): string | undefined {
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The name in parentheses may contain spaces. After it, field 1 is the state, field 20 the start time.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      // A zombie main thread with other threads alive: the sockets are still open.
      if (fields[0] === 'Z' && readdirSync(`/proc/${pid}/task`).length < 2) return undefined
      return `${fields[19]} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`
    } catch {
      return undefined
    }
  }
  try {
    return execFileSync('ps', ['-o', 'lstart=,command=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}

/** Waits until the process with this identity is gone and its ports are free. @returns false after `milliseconds`. */
export async function waitForExit(pid: number, identity: string, milliseconds: number): Promise<boolean> {
  const deadline = Date.now() + milliseconds
  // The identity of an exiting process is only the start time, a prefix.
  for (let left = processIdentity(pid); left && identity.startsWith(left); left = processIdentity(pid)) {
    if (Date.now() > deadline) return false
    await sleep(25)
  }
  return true
}
