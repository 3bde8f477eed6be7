import { readdirSync, readFileSync } from 'node:fs'
import { cpuTime } from '../support/cpu-time.ts'
import type { TestStack } from '../support/stack.ts'

const TICK_MS = 10
const NAMES = ['api', 'worker', 'temporal', 'postgres'] as const

/**
 * The CPU time of the processes of a stack, each with its children, and of this process, the client; in milliseconds. At
 * 2 ms for a request in all of them two cores serve 1,000 requests a second. Linux only.
 */
export function stackCpu(stack: TestStack): Map<string, number> {
  const times = new Map([...NAMES.map((name) => [name, 0] as const), ['client', cpuTime()]])
  const names = new Map(NAMES.map((name) => [stack.pid(name), name]))
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const { parent, own, ofEnded } = statOf(pid)
    const name = names.get(Number(pid))
    if (name) times.set(name, times.get(name)! + own + ofEnded)
    const child = names.get(parent)
    if (child) times.set(child, times.get(child)! + own)
  }
  return times
}

/** Of a process: its parent, its CPU time, and that of its children that have ended. */
function statOf(pid: string): { parent: number; own: number; ofEnded: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // After the program's name, which may contain spaces.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const ms = (user: number, system: number) => (fields[user]! + fields[system]!) * TICK_MS
    return { parent: fields[1]!, own: ms(11, 12), ofEnded: ms(13, 14) }
  } catch {
    // It has ended meanwhile.
    return { parent: 0, own: 0, ofEnded: 0 }
  }
}
