import { createHash, randomBytes } from 'node:crypto'
import type { TraceContext } from './trace-context.ts'

/**
 * The spans of a trace (OpenTelemetry). The process in which a span ends records it. Parent spans may end in other
 * processes, and only the trace id is stored. Therefore a span that belongs to a row has an id derived from the row's
 * id: every process can compute it, and a repeated record has the same id.
 */
export interface EndedSpan extends SpanParent {
  name: string
  kind: 'server' | 'client' | 'producer' | 'internal'
  /** 16 hexadecimal digits. */
  id: string
  /** Milliseconds since 1970. */
  start: number
  end: number
  failed?: boolean
  /** Only ids, names and numbers: no tenant data, no URLs. */
  attributes: Record<string, string | number | null | undefined>
}

/** The position of a span in its trace. */
export interface SpanParent {
  /** A UUID, the stored form. */
  traceId: string
  /** The id of the parent; undefined for the first span of a trace. */
  parent?: string | undefined
}

/** The traces of a process; absent if they are not configured. */
export interface Traces {
  /** Neither waits nor throws. */
  record(span: EndedSpan): void
  /** Whether spans of a trace are exported. It depends on the id alone, so that all processes decide alike. */
  isSampled(traceId: string): boolean
  /** Exports the recorded spans, within two seconds. */
  close(): Promise<void>
}

/** The id of a span that belongs to no row. */
export const newSpanId = (): string => randomBytes(8).toString('hex')

/** The span id of an event or a run: the random half of its own id. */
export const spanIdOf = (id: string): string => id.replaceAll('-', '').slice(16)

/** The id of the span of a run's time in the queue. */
export const queuedSpanId = (runId: string): string => hashed(`queued ${runId}`)

/** The span id of an attempt of a node. `path` is its iteration, '' outside of loops. */
export const nodeSpanId = (runId: string, path: string, nodeId: string, attempt: number): string =>
  hashed(`node ${runId} ${path} ${nodeId} ${attempt}`)

const hashed = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** The span of a request, as a parent. */
export const parentIn = ({ traceId, spanId }: TraceContext): SpanParent => ({ traceId, parent: spanId })

/** The parent of a transaction's spans: its request, or the given trace. */
export const spanParent = (spans: PendingSpans, trace: TraceContext | undefined): SpanParent | undefined =>
  trace ? parentIn(trace) : spans.parent

/** The spans of one transaction, which are recorded once it has committed. */
export class PendingSpans implements Iterable<EndedSpan> {
  private readonly ended: EndedSpan[]
  /** Undefined if the trace of the transaction is unknown: it then has no spans. */
  readonly parent: SpanParent | undefined
  /** The run that the parent is part of. */
  readonly runId: string | null

  constructor(parent?: SpanParent, runId: string | null = null, ended: EndedSpan[] = []) {
    this.parent = parent
    this.runId = runId
    this.ended = ended
  }

  /** The same transaction, with a part of a run as the parent of added spans. */
  below(runId: string, parent: SpanParent): PendingSpans {
    return new PendingSpans(parent, runId, this.ended)
  }

  /** @param place defaults to a child of `parent`. */
  add(span: Omit<EndedSpan, keyof SpanParent>, place = this.parent): void {
    if (place) this.ended.push({ ...span, ...place })
  }

  get length(): number {
    return this.ended.length
  }

  /** Removes the spans after the first `length`, which belong to a savepoint that was rolled back. */
  truncate(length: number): void {
    this.ended.length = length
  }

  [Symbol.iterator]() {
    return this.ended.values()
  }
}
