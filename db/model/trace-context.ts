/** What a transaction belongs to. */
export interface TraceContext {
  /** A UUID. */
  traceId: string
  /** The span of the request, if traces are exported. */
  spanId?: string | undefined
}
