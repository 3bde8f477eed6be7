import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/**
 * What tells a running process from another that got the same pid later: when it started, and its command line.
 * One that is ending has lost its command line already. Undefined when no such process runs (or where neither /proc
 * nor `ps` can tell).
 */
export function processIdentity(pid: number): string | undefined {
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The name in parentheses may hold spaces. After it: state first, the start time twentieth.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      // Only its first thread may be dead: as long as there is another, its sockets are open.
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

/** Waits until the process with this identity is gone, and its ports are free. @returns false when it still runs after `milliseconds`. */
export async function waitForExit(pid: number, identity: string, milliseconds: number): Promise<boolean> {
  const deadline = Date.now() + milliseconds
  // The start of its identity is all that one has which is ending.
  for (let left = processIdentity(pid); left && identity.startsWith(left); left = processIdentity(pid)) {
    if (Date.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  return true
}
