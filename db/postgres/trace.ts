/**
 * Traces (W3C Trace Context): events and runs have the trace id of the request that led to them, however many runs are
 * between. It is kept as a UUID, which has the same 128 bits; all others see 32 hexadecimal digits.
 */

/**
 * SQL: the trace of this transaction's request, else a new one. Also the default of the columns `trace_id`, so that only
 * what has a cause names them in statements.
 */
export const TRACE = `coalesce(nullif(current_setting('app.trace_id', true), '')::uuid, gen_random_uuid())`

/** SQL: a trace id as the API shows it. */
export const traceText = (column: string): string => `replace(${column}::text, '-', '')`
