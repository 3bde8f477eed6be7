import type { ErrorDetails, ErrorType } from '../../db/errors.ts'
import { STATUS } from './errors.ts'

/** The errors of the OpenAPI document: their one shape, and what each status says. */
export const errorShapes = {
  ErrorResponse: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['type', 'message', 'request_id'],
        properties: {
          type: { type: 'string', enum: Object.keys(STATUS), description: 'Stable, for programs.' },
          message: { type: 'string', description: 'What is wrong, for people.' },
          request_id: { type: 'string' },
          hint: { type: 'string', description: 'What to do about it.' },
          param: { type: 'string', description: 'The parameter or field that it is about.' },
          candidates: { type: 'array', items: {}, description: 'What it could have meant.' },
          validation: { type: 'object', description: 'With workflow_invalid: what validation found.' },
          merged_into: {
            type: 'string',
            description: 'Of a record that was merged: the record that it went into.',
          },
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
            hint: { type: 'string' },
          },
        },
      },
    },
  },
}

const MEANING: Record<number, string> = {
  400: 'The request cannot be read, or not be done as asked',
  401: 'The key is missing or invalid',
  403: 'The scope, role or plan does not allow it',
  404: 'There is no such path, or nothing with this id in your organization',
  405: 'The path does not have this method',
  409: 'It contradicts something that is there, or the Idempotency-Key',
  412: 'If-Match names an older version',
  413: 'The body is too large',
  415: 'The body is of another type than the operation takes',
  422: 'Fields or parameters are invalid or unknown',
  429: 'Too many requests, or a quota is used up: wait for Retry-After',
  500: 'An error on our side',
  503: 'Busy or starting: try again',
}

/** Of each type, what one is told. */
const EXAMPLES: Record<ErrorType, [message: string, details?: ErrorDetails]> = {
  unauthorized: ['missing or invalid API key'],
  insufficient_scope: ['the key lacks the scope contacts:write'],
  csrf_token_invalid: ['the X-CSRF-Token header is missing', { param: 'X-CSRF-Token' }],
  not_found: ['contact not found'],
  invalid_request: ['cursor and offset exclude each other', { param: 'cursor' }],
  ambiguous_name: ['2 workflows have this name', { candidates: [{ name: 'Greet' }, { name: 'Greet' }] }],
  workflow_invalid: ['the workflow has errors', { validation: { valid: false, errors: [], warnings: [] } }],
  idempotency_conflict: ['a request with this key is in flight'],
  version_conflict: ['the record has changed since'],
  conflict: ['external_id is taken', { param: 'external_id' }],
  payload_too_large: ['the body is larger than 1,048,576 bytes'],
  unsupported_media_type: ['the body must be JSON'],
  validation_error: ['unknown field'],
  rate_limited: ['more than 600 requests a minute of this key'],
  quota_exceeded: ['the quota of the month is used up'],
  plan_limit: ['the plan has 3 incoming webhooks, and all are in use'],
  method_not_allowed: ['PUT is not possible here', { hint: 'allowed: GET, PATCH, DELETE' }],
  internal_error: ['something went wrong on our side'],
  unavailable: ['the service is busy or starting: try again'],
}

export const errorResponses = Object.fromEntries(
  Object.entries(MEANING).map(([status, description]) => [
    status,
    {
      description,
      headers: headersOf(status),
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/ErrorResponse' },
          examples: Object.fromEntries(
            (Object.keys(STATUS) as ErrorType[])
              .filter((type) => STATUS[type] === Number(status))
              .map((type) => [type, { value: exampleOf(type) }]),
          ),
        },
      },
    },
  ]),
)

function headersOf(status: string): object {
  const names = ['X-Request-Id', ...(status === '429' || status === '503' ? ['Retry-After'] : [])]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function exampleOf(type: ErrorType): object {
  const [message, details] = EXAMPLES[type]
  const error = { type, message, request_id: '0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10', ...details }
  return type === 'validation_error'
    ? { error, detail: [{ loc: ['body', 'emial'], msg: 'unknown field', type: 'unrecognized_key' }] }
    : { error }
}
