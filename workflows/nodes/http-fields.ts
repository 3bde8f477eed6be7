import { z } from 'zod'
import type { HttpResponse } from '../effects/http.ts'
import { NodeError } from '../language/node-error.ts'
import { isTransientStatus, retryAfterMs } from './retry-after.ts'

/** Settings and errors of nodes that send HTTP requests. */

export const httpUrl = z.string().regex(/^https?:\/\/\S+$/i, {
  error: ({ input }) =>
    /^https?:\/\/.*\s/is.test(String(input))
      ? 'must be a URL without blanks: the filter `url_encode` encodes a value in it, `query` its values'
      : 'must be an http or https URL',
})

export const scalar = z.union([z.string(), z.number(), z.boolean()])

/** Headers that belong to the connection, which the client sets. */
const CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'host',
  'content-length',
])
export const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
export const headerName = z
  .string()
  .regex(HEADER_NAME, 'is not a header name')
  .refine((name) => !CONNECTION.has(name.toLowerCase()), 'is set by the connection')

export const texts = (values: Record<string, string | number | boolean>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))

/** The `error.details` of a node whose server answered with an unexpected status. */
export const errorDetails = z.strictObject({
  status: z.int(),
  body: z.unknown().describe('JSON as a value; another body, or a long one, as the start of its text.'),
})

/** The most characters of a body in an error: errors are stored and shown. */
const MAX_TEXT = 2_000

export function unexpectedStatus(
  { status, headers, body, body_error }: HttpResponse,
  retryable = isTransientStatus(status),
): NodeError {
  const shown = (body_error?.code === 'binary_body' ? body_error.message : body) ?? null
  const text = typeof shown === 'string' ? shown : JSON.stringify(shown)
  return new NodeError('unexpected_status', `the server answered ${status}`, {
    retryable,
    retryAfterMs: retryAfterMs(headers),
    details: { status, body: text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : shown },
  })
}
