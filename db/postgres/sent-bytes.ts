/** The interval at which the bytes are reported. */
const EVERY_MS = 5_000
/** Bytes of one organization that are reported at once. */
const LARGE = 4 * 1024 * 1024

type Report = (counts: ReadonlyMap<string, number>) => Promise<void>

/** Counts the bytes that the transactions of organizations send, and reports them every few seconds. */
export class SentBytes {
  private counts = new Map<string, number>()
  private timer: NodeJS.Timeout | undefined
  private report: Report | undefined

  /** Begins to count. An error of `report` loses what it was to report. */
  reportTo(report: Report): void {
    this.report = report
  }

  add(organizationId: string, bytes: number): void {
    if (!this.report) return
    const sum = (this.counts.get(organizationId) ?? 0) + bytes
    this.counts.set(organizationId, sum)
    if (sum > LARGE) void this.flush()
    else this.timer ??= setTimeout(() => void this.flush(), EVERY_MS).unref()
  }

  async flush(): Promise<void> {
    clearTimeout(this.timer)
    this.timer = undefined
    if (this.counts.size === 0) return
    const counts = this.counts
    this.counts = new Map()
    await this.report?.(counts).catch(() => {})
  }
}
