import { readFileSync } from 'node:fs'
import { type LoadResult, load, median } from './load.ts'
import { print } from './report.ts'

/** Many short rounds, because the speed of a shared machine varies. */
const ROUNDS = 21
const SECONDS = 0.5
/**
 * Maximum overhead of authentication, limits and tenancy over the bare handler: median of one client, in milliseconds.
 */
const MAX_MS = 0.35
/** The unit of CPU times in /proc. */
const TICKS_PER_SECOND = 100

/** A server that answers GET of one record. */
export interface Getter {
  origin: string
  pid: number
  headers?: Record<string, string>
}

interface Round extends LoadResult {
  /** Milliseconds of CPU time of the process for each request, without PostgreSQL. */
  cpu: number
}

/**
 * The cost of authentication, limits and tenancy, and of the rest: GET of one record by one client, in turns, from a
 * bare handler (only the SELECT), from one with tenancy, from one with all three, and from the API. On a busy machine
 * the CPU times are more reliable than the times.
 */
export async function benchAccess(
  api: Getter,
  floor: Getter,
  next: Parameters<typeof load>[3],
): Promise<void> {
  const of = (name: string) => ({ ...floor, headers: { 'x-floor': name } })
  const sides = { bare: of('bare'), tenancy: floor, access: of('access'), api }
  type Side = keyof typeof sides
  const measure = async ({ origin, pid, headers }: Getter): Promise<Round> => {
    const before = cpuTime(pid)
    const result = await load(origin, 1, SECONDS, () => {
      const shot = next()
      return { ...shot, headers: { ...shot.headers, ...headers } }
    })
    return { ...result, cpu: (cpuTime(pid) - before) / result.requests }
  }
  const rounds: Record<Side, Round>[] = []
  // The first round is a warm-up.
  for (let round = 0; round <= ROUNDS; round++) {
    const results: Partial<Record<Side, Round>> = {}
    for (const side of Object.keys(sides) as Side[]) results[side] = await measure(sides[side])
    rounds.push(results as Record<Side, Round>)
  }
  const counted = rounds.slice(1)
  const report = (what: string, side: Side, from: Side, most = '') => {
    const at = (pick: (round: Round) => number) => {
      const value = median(counted.map((round) => pick(round[side]))).toFixed(2)
      const above = median(counted.map((round) => pick(round[side]) - pick(round[from]))).toFixed(2)
      return `${value} ms, ${above} above`
    }
    const best = (of: Side) => Math.min(...counted.map((round) => round[of].p50))
    print(
      `access: ${what.padEnd(52)} p50 ${at(({ p50 }) => p50)}, of the best rounds ${(best(side) - best(from)).toFixed(2)}${most}; CPU ${at(({ cpu }) => cpu)}`,
    )
  }
  report('bare handler, its own figures', 'bare', 'bare')
  report('tenancy, above the bare handler', 'tenancy', 'bare')
  report('authentication, limits, tenancy, above the same', 'access', 'bare', ` (at most ${MAX_MS})`)
  report('the api, above the bare handler', 'api', 'bare')
  report('the api, above the handler with all three', 'api', 'access')
  const refused = counted.flatMap((round) => Object.values(round)).reduce((sum, one) => sum + one.refused, 0)
  if (refused > 0) print(`access: ${refused} answers were not 2xx, the figures are void`)
}

/** The CPU time of another process, in milliseconds. Linux only. */
function cpuTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name in parentheses may contain spaces. Fields 11 and 12 after it are the times in user and system mode.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND
}
