import { newSpanId, type Traces } from '../../db/model/spans.ts'
import type { TraceContext } from '../../db/model/trace-context.ts'

/** The header by which a receiver continues the trace (W3C Trace Context). */
export const traceparent = ({ traceId, spanId = newSpanId() }: TraceContext, traces?: Traces): string =>
  `00-${traceId.replaceAll('-', '')}-${spanId}-${traces?.isSampled(traceId) === false ? '00' : '01'}`
