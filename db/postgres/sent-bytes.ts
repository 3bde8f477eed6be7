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

  /** Counts the statements of one transaction. @returns undefined if nothing is reported. */
  counterOf(organizationId: string): SentCounter | undefined {
    return this.report && new SentCounter(this, organizationId)
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

type Statement = string | { text: string; values?: unknown[] }

/** Counts the bytes of the parameters of a transaction's statements that write. */
export class SentCounter {
  private readonly sent: SentBytes
  private readonly organizationId: string
  private bytes = 0

  constructor(sent: SentBytes, organizationId: string) {
    this.sent = sent
    this.organizationId = organizationId
  }

  note(statement: Statement): void {
    this.bytes += bytesSent(statement)
  }

  /** What was rolled back does not count. */
  committed(): void {
    if (this.bytes > 0) this.sent.add(this.organizationId, this.bytes)
  }
}

/** At least: texts count by their characters. */
function bytesSent(statement: Statement): number {
  if (typeof statement === 'string' || !statement.values || READS.test(statement.text)) return 0
  let bytes = 0
  for (const value of statement.values)
    if (typeof value === 'string' || Buffer.isBuffer(value)) bytes += value.length
    else if (Array.isArray(value))
      for (const one of value) bytes += typeof one === 'string' || Buffer.isBuffer(one) ? one.length : 8
  return bytes
}

const READS = /^\s*select/i
