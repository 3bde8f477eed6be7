/** The starts of one key of a rate: any `per` milliseconds have at most `limit`. Times are milliseconds since 1970. */
export class RateWindow {
  /** The oldest first. */
  private readonly times: number[]
  private readonly limit: number
  private readonly perMs: number

  /** `times`: the last `limit` starts, in any order. */
  constructor(times: readonly number[], { limit, per_ms }: { limit: number; per_ms: number }) {
    this.times = [...times].sort((a, b) => a - b)
    this.limit = limit
    this.perMs = per_ms
  }

  /** The earliest time, `now` or later, at which another start is within the limit, after all the others. */
  next(now: number): number {
    const blocking = this.times.at(-this.limit)
    const last = this.times.at(-1)
    return Math.max(now, last ?? now, blocking === undefined ? now : blocking + this.perMs)
  }

  add(time: number): void {
    this.times.push(time)
    this.times.sort((a, b) => a - b)
  }
}
