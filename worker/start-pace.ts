import { grown, median, shrunk } from './adaptive-limit.ts'

const LEAST = 4
const INITIAL = 8
/** How much longer than the baseline a start may take. */
const SLOWER = 2
const SLACK_MS = 50
/** The baseline follows a machine that has become slower, by this factor a second. */
const DRIFT = 1.01

/**
 * The number of starts in flight of a kind of work that gives way to the others: deliveries, of which one event may
 * queue many. What Temporal carries is measured by the time that it takes for a start, against the least median so far:
 * as in TCP Vegas, more starts in flight than it carries only wait there, and let everything else wait too.
 */
export class StartPace {
  atOnce = INITIAL
  private readonly most: number
  private times: number[] = []
  private baseline = Number.POSITIVE_INFINITY

  constructor(most: number) {
    this.most = most
  }

  /** Measures a start. */
  async measure<T>(start: Promise<T>): Promise<T> {
    const from = performance.now()
    const result = await start
    this.record(performance.now() - from)
    return result
  }

  /** Records the time of one start in milliseconds. */
  record(ms: number): void {
    this.times.push(ms)
  }

  /** Adjusts the number to the starts since the last call, a second ago. */
  adjust(): void {
    const time = median(this.times)
    this.times = []
    if (time === undefined) return
    this.baseline = Math.min(time, this.baseline * DRIFT)
    const isSlow = time > SLOWER * this.baseline + SLACK_MS
    this.atOnce = isSlow ? shrunk(this.atOnce, LEAST) : grown(this.atOnce, this.most)
  }
}
