import { readdirSync, readFileSync } from 'node:fs'
import { cpuTime } from '../support/cpu-time.ts'
import type { TestStack } from '../support/stack.ts'
import type { LoadResult } from './load.ts'

const TICK_MS = 10
const NAMES = ['api', 'worker', 'temporal', 'postgres'] as const

/**
 * The CPU time of a stack's processes, each with its children, and of this process, the client; in milliseconds. At a
 * total of 2 ms per request two cores serve 1,000 requests per second. `others`: further processes. Linux only.
 */
export function stackCpu(stack: TestStack, others: Record<string, number> = {}): Map<string, number> {
  const pids = [...NAMES.map((name) => [name, stack.pid(name)] as const), ...Object.entries(others)]
  const times = new Map<string, number>([...pids.map(([name]) => [name, 0] as const), ['client', cpuTime()]])
  const names = new Map(pids.map(([name, pid]) => [pid, name]))
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const { parent, own, ofEnded } = statOf(pid)
    const name = names.get(Number(pid))
    if (name) times.set(name, times.get(name)! + own + ofEnded)
    const child = names.get(parent)
    if (child) times.set(child, times.get(child)! + own)
  }
  return times
}

/** The parent of a process, its CPU time, and that of its ended children. */
function statOf(pid: string): { parent: number; own: number; ofEnded: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The fields after the program's name, which may contain spaces.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const ms = (user: number, system: number) => (fields[user]! + fields[system]!) * TICK_MS
    return { parent: fields[1]!, own: ms(11, 12), ofEnded: ms(13, 14) }
  } catch {
    // The process has ended.
    return { parent: 0, own: 0, ofEnded: 0 }
  }
}

/** The CPU time of a stack during some loads. */
export class CpuMeter {
  private readonly times = new Map<string, number>()
  private requests = 0
  private readonly read: () => Map<string, number>

  constructor(read: () => Map<string, number>) {
    this.read = read
  }

  async of(load: () => Promise<LoadResult>): Promise<LoadResult> {
    const before = this.read()
    const result = await load()
    for (const [name, ms] of this.read())
      this.times.set(name, (this.times.get(name) ?? 0) + ms - before.get(name)!)
    this.requests += result.requests
    return result
  }

  /** Milliseconds per request, in total and by process. */
  toString(): string {
    const each = [...this.times].map(([name, ms]) => [name, ms / this.requests] as const)
    const total = each.reduce((sum, [, ms]) => sum + ms, 0)
    return `${total.toFixed(2)} ms (${each.map(([name, ms]) => `${name} ${ms.toFixed(2)}`).join(', ')})`
  }
}
