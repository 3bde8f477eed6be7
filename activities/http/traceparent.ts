import { randomBytes } from 'node:crypto'

/** The header by which a receiver continues the trace (W3C Trace Context). `traceId`: a UUID. */
export const traceparent = (traceId: string): string =>
  `00-${traceId.replaceAll('-', '')}-${randomBytes(8).toString('hex')}-01`
