import type { ErrorDetails, ErrorType } from '../../db/model/errors.ts'
import { OBSTACLE_CODES } from '../../workflows/interpret/migrate.ts'
import { docUrl, STATUS } from './errors.ts'

/** The errors in the OpenAPI document: one schema, and one shared response per status. */
export const errorShapes = {
  ErrorResponse: {
    type: 'object',
    required: ['error'],
    properties: {
      error: { $ref: '#/components/schemas/ApiError' },
      detail: {
        type: 'array',
        description: 'Every issue of the request. Only with 422.',
        items: { $ref: '#/components/schemas/ValidationIssue' },
      },
    },
  },
  ApiError: {
    type: 'object',
    required: ['type', 'message', 'request_id'],
    properties: {
      type: { type: 'string', enum: Object.keys(STATUS), description: 'A stable code for programs.' },
      message: { type: 'string', description: 'A description for people.' },
      request_id: { type: 'string', description: 'The `X-Request-Id` of the response.' },
      doc_url: {
        type: 'string',
        description: 'What the type means and what to do, below the address of the service.',
      },
      hint: { type: 'string', description: 'How to correct the request.' },
      param: { type: 'string', description: 'The parameter or field that caused the error.' },
      candidates: { type: 'array', items: {}, description: 'The possible matches, if several match.' },
      validation: { type: 'object', description: 'The result of the validation, with `workflow_invalid`.' },
      obstacles: {
        type: 'array',
        items: { $ref: '#/components/schemas/MigrationObstacle' },
        description: 'All that stands against the migration of a run.',
      },
      missing: {
        type: 'array',
        items: { $ref: '#/components/schemas/Finding' },
        description: 'All that a workflow needs to be activated and that is not there.',
      },
      merged_into: { type: 'string', description: 'The id of the record that this one was merged into.' },
    },
  },
  MigrationObstacle: {
    type: 'object',
    required: ['code', 'node_id', 'message', 'hint'],
    properties: {
      code: { type: 'string', enum: [...OBSTACLE_CODES], description: 'A stable code for programs.' },
      node_id: { type: ['string', 'null'], description: 'Null: it concerns the run.' },
      message: { type: 'string', description: 'A description for people.' },
      hint: { type: 'string', description: 'What to do.' },
    },
  },
  ValidationIssue: {
    type: 'object',
    required: ['loc', 'msg', 'type'],
    properties: {
      loc: {
        type: 'array',
        items: { type: ['string', 'integer'] },
        description: 'The location: `["body", "email"]`.',
      },
      msg: { type: 'string', description: 'A description for people.' },
      type: { type: 'string', description: 'A stable code for programs.' },
      input: { description: 'The invalid value, at most 200 characters.' },
      hint: { type: 'string', description: 'How to correct it.' },
    },
  },
}

/** The statuses of errors, with the names of their responses. */
const RESPONSES: Record<number, [name: string, description: string]> = {
  400: ['BadRequest', 'The request is malformed or contradictory.'],
  401: ['Unauthorized', 'The API key or session is missing or invalid.'],
  403: ['Forbidden', 'The scope, role or plan does not allow the operation.'],
  404: ['NotFound', 'The path does not exist, or the organization has no resource with this id.'],
  409: [
    'Conflict',
    'The request conflicts with stored data, or with another request with the same Idempotency-Key.',
  ],
  410: ['Gone', 'The resource is closed for good.'],
  412: ['PreconditionFailed', 'If-Match does not name the current version.'],
  413: ['ContentTooLarge', 'The body is too large.'],
  415: ['UnsupportedMediaType', 'The content type of the body is not supported.'],
  422: ['UnprocessableContent', 'Fields or parameters are invalid or unknown.'],
  429: ['TooManyRequests', 'A rate limit or quota is exceeded. Retry after Retry-After.'],
  431: ['HeadersTooLarge', 'The request headers are too large.'],
  500: ['InternalServerError', 'An unexpected error of the service.'],
  503: ['ServiceUnavailable', 'The service is busy or starting. Retry after Retry-After.'],
}

/** A reference to the shared response of a status. */
export const errorResponse = (status: number) => ({ $ref: `#/components/responses/${RESPONSES[status]![0]}` })

/** One example for each type of error. */
const EXAMPLES: Record<ErrorType, [message: string, details?: ErrorDetails]> = {
  unauthorized: ['missing or invalid API key'],
  insufficient_scope: ['the key lacks the scope contacts:write'],
  csrf_token_invalid: ['the X-CSRF-Token header is missing', { param: 'X-CSRF-Token' }],
  not_found: ['contact not found'],
  invalid_request: ['cursor and offset are mutually exclusive', { param: 'cursor' }],
  ambiguous_name: ['2 workflows have this name', { candidates: [{ name: 'Greet' }, { name: 'Greet' }] }],
  workflow_invalid: ['the workflow has errors', { validation: { valid: false, errors: [], warnings: [] } }],
  idempotency_conflict: ['this key was used with another body'],
  idempotency_in_progress: ['a request with this key is in progress'],
  version_conflict: ['the contact is not at the expected version'],
  conflict: ['external_id is taken', { param: 'external_id' }],
  gone: ['the approval is closed: it has expired, or its run has ended'],
  payload_too_large: ['the body is larger than 1,048,576 bytes'],
  unsupported_media_type: ['the body must be JSON'],
  validation_error: ['emial: unknown field', { hint: 'did you mean email?' }],
  rate_limited: ['the key exceeds 600 requests per minute'],
  quota_exceeded: ['the monthly quota is exceeded'],
  plan_limit: ['the plan has 3 incoming webhooks, and all are in use'],
  method_not_allowed: ['this path does not support PUT', { hint: 'allowed: GET, PATCH, DELETE' }],
  internal_error: ['something went wrong on our side'],
  unavailable: ['the service is busy or starting: try again'],
}

/** The headers are too large: a refusal of Node's HTTP parser. */
const HEADERS_TOO_LARGE = exampleOf('invalid_request', ['the headers are too large'])

export const errorResponses = Object.fromEntries(
  Object.entries(RESPONSES).map(([status, [name, description]]) => [
    name,
    {
      description,
      headers: headersOf(status),
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/ErrorResponse' },
          examples: status === '431' ? { invalid_request: { value: HEADERS_TOO_LARGE } } : examplesOf(status),
        },
      },
    },
  ]),
)

/** The shared response of a status itself, for an operation that adds to it. */
export const errorResponseOf = (status: number) => errorResponses[RESPONSES[status]![0]]!

function headersOf(status: string): object {
  const names = ['X-Request-Id', ...(['409', '429', '503'].includes(status) ? ['Retry-After'] : [])]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function examplesOf(status: string): Record<string, { value: object }> {
  const types = (Object.keys(STATUS) as ErrorType[]).filter((type) => STATUS[type] === Number(status))
  return Object.fromEntries(types.map((type) => [type, { value: exampleOf(type, EXAMPLES[type]) }]))
}

function exampleOf(type: ErrorType, [message, details]: [message: string, details?: ErrorDetails]): object {
  const error = {
    type,
    message,
    request_id: '0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10',
    doc_url: docUrl(type),
    ...details,
  }
  const issue = {
    loc: ['body', 'emial'],
    msg: 'unknown field',
    type: 'unrecognized_key',
    hint: 'did you mean email?',
  }
  return type === 'validation_error' ? { error, detail: [issue] } : { error }
}
