/** The trace of a transaction. */
export interface TraceContext {
  /** A UUID. */
  traceId: string
  /** The span of the request, if traces are exported. */
  spanId?: string | undefined
}
