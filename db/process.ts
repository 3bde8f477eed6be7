import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * What tells a running process from another that got the same pid later: when it started, and its command line.
 * Undefined when no such process runs (or where neither /proc nor `ps` can tell).
 */
export function processIdentity(pid: number): string | undefined {
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The name in parentheses may hold spaces. After it: state first, the start time twentieth.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (fields[0] === 'Z') return undefined
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

/** Waits until the process with this identity is gone. @returns false when it still runs after `milliseconds`. */
export async function waitForExit(pid: number, identity: string, milliseconds: number): Promise<boolean> {
  const deadline = Date.now() + milliseconds
  while (processIdentity(pid) === identity) {
    if (Date.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  return true
}
