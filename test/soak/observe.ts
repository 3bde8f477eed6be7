import { readdirSync, readFileSync } from 'node:fs'
import type { Database } from '../../db/postgres/connect.ts'
import { summary } from '../bench/load.ts'
import type { ProcessName, TestStack } from '../support/stack.ts'
import type { TimedLoad } from './load.ts'

const EVERY_MS = 60_000
const PROCESSES = ['api', 'worker', 'postgres', 'temporal'] as const satisfies ProcessName[]

/** Prints a line a minute, and records the memory of each process. Linux only. */
export class Observer {
  private readonly stack: TestStack
  private readonly db: Database
  private readonly load: TimedLoad
  private readonly say: (line: string) => void
  private readonly memory: Record<string, number[]> = {}
  private minute = 0
  private runs = 0
  private failures = 0
  private timer: NodeJS.Timeout | undefined

  constructor(stack: TestStack, db: Database, load: TimedLoad, say: (line: string) => void) {
    this.stack = stack
    this.db = db
    this.load = load
    this.say = say
  }

  start(): void {
    this.load.times.length = 0
    this.runs = this.load.ledger.runs.length
    this.failures = this.load.ledger.failures
    this.timer = setInterval(() => this.look().catch((error) => this.say(`not observed: ${error}`)), EVERY_MS)
  }

  stop(): void {
    clearInterval(this.timer)
  }

  private async look(): Promise<void> {
    const { perSecond, p50, p99 } = summary(this.load.times.splice(0), EVERY_MS / 1_000)
    const runs = (this.load.ledger.runs.length - this.runs) / (EVERY_MS / 1_000)
    const failures = this.load.ledger.failures - this.failures
    this.runs = this.load.ledger.runs.length
    this.failures = this.load.ledger.failures
    const resident = PROCESSES.map((name) => {
      const megabytes = residentOf(this.stack.pid(name)) / 1_024
      this.memory[name] = [...(this.memory[name] ?? []), megabytes]
      return `${name} ${megabytes.toFixed(0)}`
    })
    const lag = await Promise.all([lagOf(this.stack.apiUrl), lagOf(this.stack.workerUrl)])
    this.say(
      [
        `${String(++this.minute).padStart(3)} min`,
        `${perSecond.toFixed(0)} requests/s, ${runs.toFixed(1)} runs/s`,
        `p50 ${p50.toFixed(0)} p99 ${p99.toFixed(0)} ms, ${failures} failures`,
        `MB: ${resident.join(', ')}`,
        `event-loop delay p99: api ${lag[0]} worker ${lag[1]} ms`,
        `queued: ${await this.queued('runs')} runs, ${await this.queued('deliveries')} deliveries`,
      ].join(' | '),
    )
  }

  private async queued(table: string): Promise<number> {
    const [row] = await this.db.system(table).where({ status: 'queued' }).count<{ count: number }[]>()
    return row!.count
  }

  /** Megabytes per hour by least squares, over the second half of the minutes: the first half is a warm-up. */
  printSlopes(): void {
    for (const [name, all] of Object.entries(this.memory)) {
      const values = all.slice(Math.floor(all.length / 2))
      const middle = (values.length - 1) / 2
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length
      const covariance = values.reduce((sum, value, i) => sum + (i - middle) * (value - mean), 0)
      const variance = values.reduce((sum, _, i) => sum + (i - middle) ** 2, 0)
      const slope = variance > 0 ? `${((covariance / variance) * 60).toFixed(1)} MB/h` : 'too short to tell'
      this.say(`memory of ${name}: ${values.at(-1)?.toFixed(0)} MB, ${slope}`)
    }
  }
}

/** The 99th percentile of the event loop's delay in milliseconds. */
async function lagOf(url: string): Promise<string> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const seconds = /^nodejs_eventloop_lag_p99_seconds(?:{[^}]*})? (\S+)/m.exec(text)?.[1]
  return seconds === undefined ? '?' : (Number(seconds) * 1_000).toFixed(0)
}

/** Kilobytes of a process and its children. Shared memory of PostgreSQL is counted once per process. */
function residentOf(pid: number): number {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) => childrenOf(`/proc/${pid}/task/${task}`))
  const own = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0)
  return children.reduce((sum, child) => sum + residentOrGone(child), own)
}

/** The children that a thread has started; none if it has ended. */
function childrenOf(thread: string): number[] {
  try {
    return readFileSync(`${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function residentOrGone(pid: number): number {
  try {
    return residentOf(pid)
  } catch {
    return 0
  }
}
