import { createHash, randomBytes } from 'node:crypto'
import type { TraceContext } from './trace-context.ts'

/**
 * The spans of a trace (OpenTelemetry). A span is recorded when it has ended, by the process in which it ended. The parents
 * of a span may have ended in other processes, and only the trace id is stored: the ids of spans of what has a row are
 * derived from the id of that row, so that every process knows them, and a repeated record has the same id.
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
  /** Ids, names and numbers only: no values of tenants, no URLs. */
  attributes: Record<string, string | number | null | undefined>
}

/** Where a span is. */
export interface SpanParent {
  /** A UUID, as it is stored. */
  traceId: string
  /** The id of the parent; undefined for the first span of a trace. */
  parent?: string | undefined
}

/** The traces of a process; absent if they are not configured. */
export interface Traces {
  /** Neither waits nor throws. */
  record(span: EndedSpan): void
  /** Whether spans of a trace are exported, which all processes decide by its id. */
  isSampled(traceId: string): boolean
  /** Exports what is recorded, for two seconds at most. */
  close(): Promise<void>
}

/** The id of a span that nothing stored belongs to. */
export const newSpanId = (): string => randomBytes(8).toString('hex')

/** The id of the span of an event or a run: the random half of its own id. */
export const spanIdOf = (id: string): string => id.replaceAll('-', '').slice(16)

/** The id of the span in which a run was queued. */
export const queuedSpanId = (runId: string): string => hashed(`queued ${runId}`)

/** The id of the span of an attempt of a node. `path`: its iteration, '' outside of any loop. */
export const nodeSpanId = (runId: string, path: string, nodeId: string, attempt: number): string =>
  hashed(`node ${runId} ${path} ${nodeId} ${attempt}`)

const hashed = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** The span of a request, as the parent of others. */
export const parentIn = ({ traceId, spanId }: TraceContext): SpanParent => ({ traceId, parent: spanId })

/** What spans of a transaction are below: its request, or the given one. */
export const spanParent = (spans: PendingSpans, trace: TraceContext | undefined): SpanParent | undefined =>
  trace ? parentIn(trace) : spans.parent

/** The spans of one transaction: they are recorded once it has committed. */
export class PendingSpans implements Iterable<EndedSpan> {
  private readonly ended: EndedSpan[]
  /** Undefined where nothing says which trace the transaction belongs to: then it has no spans. */
  readonly parent: SpanParent | undefined
  /** The run that the parent is part of. */
  readonly runId: string | null

  constructor(parent?: SpanParent, runId: string | null = null, ended: EndedSpan[] = []) {
    this.parent = parent
    this.runId = runId
    this.ended = ended
  }

  /** The same transaction, with a part of a run as the parent of the spans that are added. */
  below(runId: string, parent: SpanParent): PendingSpans {
    return new PendingSpans(parent, runId, this.ended)
  }

  /** @param place the default is below the parent. */
  add(span: Omit<EndedSpan, keyof SpanParent>, place = this.parent): void {
    if (place) this.ended.push({ ...span, ...place })
  }

  get length(): number {
    return this.ended.length
  }

  /** Removes the spans after the first `length`: of a savepoint that was rolled back. */
  truncate(length: number): void {
    this.ended.length = length
  }

  [Symbol.iterator]() {
    return this.ended.values()
  }
}
