import type { ErrorType } from '../../db/errors.ts'
import { STATUS } from './errors.ts'

/** What every operation of the OpenAPI document shares: the error envelope, its statuses, and the headers. */

export const envelopeSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['type', 'message', 'request_id'],
      properties: {
        type: { type: 'string', enum: Object.keys(STATUS) },
        message: { type: 'string' },
        request_id: { type: 'string' },
        hint: { type: 'string' },
        param: { type: 'string' },
        candidates: { type: 'array', items: {} },
        validation: { type: 'object' },
        merged_into: { type: 'string' },
      },
    },
    detail: {
      type: 'array',
      description: 'With 422: everything that is wrong, at once.',
      items: {
        type: 'object',
        required: ['loc', 'msg', 'type'],
        properties: {
          loc: { type: 'array', items: { type: ['string', 'integer'] } },
          msg: { type: 'string' },
          type: { type: 'string' },
          input: {},
        },
      },
    },
  },
}

const MEANING: Record<number, [description: string, message: string]> = {
  400: [
    'The request cannot be read, or not be done as asked',
    'the body is not valid JSON at line 1, column 9',
  ],
  401: ['The key is missing or invalid', 'missing or invalid API key'],
  403: ['The scope, role or plan does not allow it', 'the key lacks the scope contacts:write'],
  404: ['There is no such path, or nothing with this id in your organization', 'contact not found'],
  405: ['The path does not have this method', 'PUT is not possible here'],
  409: [
    'It contradicts something that is there, or the Idempotency-Key',
    'a request with this key is in flight',
  ],
  412: ['If-Match names an older version', 'the record has changed since'],
  413: ['The body is too large', 'the body is larger than 1,048,576 bytes'],
  415: ['The body is of another type than the operation takes', 'the body must be JSON'],
  422: ['Fields or parameters are invalid or unknown', 'unknown field'],
  429: [
    'Too many requests, or a quota is used up: wait for Retry-After',
    'more than 600 requests a minute of this key',
  ],
  500: ['An error on our side', 'something went wrong on our side'],
  503: ['Busy or starting: try again', 'the service is busy or starting: try again'],
}

export const errorResponses = Object.fromEntries(
  Object.entries(MEANING).map(([status, [description, message]]) => [
    status,
    {
      description,
      headers: headersOf(status),
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/Error' },
          example: example(Number(status), message),
        },
      },
    },
  ]),
)

function headersOf(status: string): object {
  const names = ['X-Request-Id', ...(status === '429' || status === '503' ? ['Retry-After'] : [])]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function example(status: number, message: string): object {
  const type = (Object.keys(STATUS) as ErrorType[]).filter((name) => STATUS[name] === status)
  const error = { type: type.at(0), message, request_id: '0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10' }
  return status === 422
    ? { error, detail: [{ loc: ['body', 'emial'], msg: message, type: 'unrecognized_key' }] }
    : { error }
}

/** Of answers; an operation names those that it has. */
export const responseHeaders = {
  'X-Request-Id': {
    description: 'Your own where you sent a UUID or ULID',
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': { description: 'Requests in the window of 60 s', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'Requests left in it', schema: { type: 'integer' } },
  'X-RateLimit-Reset': { description: 'When it ends: UTC epoch seconds', schema: { type: 'integer' } },
  'Retry-After': { description: 'Seconds to wait before trying again', schema: { type: 'integer' } },
  ETag: { description: 'The version, in quotes; for If-Match', schema: { type: 'string' } },
  'Idempotency-Replayed': {
    description: '`true` where the answer is that of the first request with the Idempotency-Key',
    schema: { const: 'true' },
  },
  'Preference-Applied': { description: 'The `Prefer` that was followed', schema: { type: 'string' } },
}

export const securitySchemes = {
  key: { type: 'http', scheme: 'bearer', description: 'An API key: agx_…' },
  webhook: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Webhook-Secret',
    description: 'The secret of one incoming webhook.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'agx_session',
    description: 'POST /app/session sets it. Writes send its csrf_token as X-CSRF-Token too.',
  },
}
