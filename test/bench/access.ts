import { readFileSync } from 'node:fs'
import { type LoadResult, load, median } from './load.ts'
import { print } from './report.ts'

/** Many short rounds, because the speed of a shared machine varies. */
const ROUNDS = 21
const SECONDS = 0.5
/** What authentication, limits and tenancy may add to the bare handler, at the median of one client. */
const MAX_MS = 0.35
/** Of /proc. */
const TICKS_PER_SECOND = 100

/** A server that answers GET of one record. */
export interface Getter {
  origin: string
  pid: number
}

interface Round extends LoadResult {
  /** Milliseconds of CPU time of the process for each request, without PostgreSQL. */
  cpu: number
}

/**
 * The cost of authentication, limits, tenancy and the rest of the middleware: GET of one record by one client, compared
 * with the bare handler that sends the same SELECT. On a busy machine the times say little, the CPU times more.
 */
export async function benchAccess(
  api: Getter,
  floor: Getter,
  next: Parameters<typeof load>[3],
): Promise<void> {
  const measure = async ({ origin, pid }: Getter): Promise<Round> => {
    const before = cpuTime(pid)
    const result = await load(origin, 1, SECONDS, next)
    return { ...result, cpu: (cpuTime(pid) - before) / result.requests }
  }
  const rounds: { ours: Round; floor: Round }[] = []
  // The first one warms up.
  for (let round = 0; round <= ROUNDS; round++)
    rounds.push({ floor: await measure(floor), ours: await measure(api) })
  const counted = rounds.slice(1)
  const line = (what: string, pick: (round: Round) => number) => {
    const at = (of: 'ours' | 'floor') => median(counted.map((round) => pick(round[of]))).toFixed(2)
    const above = median(counted.map(({ ours, floor }) => pick(ours) - pick(floor))).toFixed(2)
    return `${what} ${at('ours')} ms, floor ${at('floor')} ms, above it ${above} ms`
  }
  const fastest =
    Math.min(...counted.map(({ ours }) => ours.p50)) - Math.min(...counted.map(({ floor }) => floor.p50))
  print(
    `access: GET ${line('p50', ({ p50 }) => p50)}, of the best rounds ${fastest.toFixed(2)} ms (at most ${MAX_MS})`,
  )
  print(`access: ${line('CPU', ({ cpu }) => cpu)}`)
  const refused = counted.reduce((sum, { ours }) => sum + ours.refused, 0)
  if (refused > 0) print(`access: ${refused} answers were not 2xx, the figures are void`)
}

/** The CPU time of another process, in milliseconds. Linux only. */
function cpuTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name in parentheses may contain spaces. After it, fields 11 and 12 are the times in user and system mode.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND
}
