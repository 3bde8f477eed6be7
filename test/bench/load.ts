import { Pool } from 'undici'

/** The results of one closed-loop load. Times in milliseconds. */
export interface LoadResult {
  perSecond: number
  p50: number
  p99: number
  requests: number
  /** Number of responses other than 2xx. */
  refused: number
}

export interface Shot {
  path: string
  method?: 'GET' | 'POST' | 'PATCH'
  headers?: Record<string, string>
  body?: string
}

/** Runs a closed loop of requests for each of `clients` clients, for `seconds` seconds. */
export async function load(
  origin: string,
  clients: number,
  seconds: number,
  next: () => Shot,
): Promise<LoadResult> {
  const pool = new Pool(origin, { connections: clients, pipelining: 1 })
  const times: number[] = []
  let refused = 0
  const started = performance.now()
  const deadline = started + seconds * 1_000
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < deadline) {
        const sent = performance.now()
        const { method = 'GET', ...shot } = next()
        const answer = await pool.request({ ...shot, method })
        await answer.body.dump()
        if (answer.statusCode >= 300) refused++
        times.push(performance.now() - sent)
      }
    }),
  )
  const took = (performance.now() - started) / 1_000
  await pool.close()
  return summary(times, took, refused)
}

/** Percentiles and rate of `times` (milliseconds each), within `took` seconds. */
export function summary(times: number[], took: number, refused = 0): LoadResult {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (quantile: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? 0
  return { perSecond: sorted.length / took, p50: at(0.5), p99: at(0.99), requests: sorted.length, refused }
}

export const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
