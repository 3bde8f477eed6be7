import { randomUUID } from 'node:crypto'

/** W3C Trace Context: version, trace id, parent, flags; later versions may append more. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/

/** The trace id of a request as a UUID: that of a valid `traceparent`, else a new one. */
export function traceOf(traceparent: string | string[] | undefined): string {
  const [, version, id, more] = (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || []
  if (id === undefined || (version === '00' && more !== undefined)) return randomUUID()
  return id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
