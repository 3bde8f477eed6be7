import { TARGETS } from '../../db/incoming/types.ts'
import { RECORD_KINDS } from '../../workflows/record-kinds.ts'

/** The one operation outside both tables: it has a shape of its own for errors, and a secret in place of a key. */
export const RECEIVER_PATH = '/webhooks/incoming/{webhook_id}'

const failure = (description: string, error: string, more: object = {}) => ({
  description,
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/ReceiverError' },
      example: { success: false, error, message: description, ...more },
    },
  },
})

export const receiverShapes = {
  ReceiverError: {
    type: 'object',
    required: ['success', 'error', 'message'],
    properties: {
      success: { const: false },
      error: { type: 'string', description: 'A stable code' },
      message: { type: 'string' },
      details: { type: 'object', additionalProperties: { type: 'string' }, description: 'Field → reason' },
      retry_after: { type: 'integer', description: 'Seconds' },
    },
  },
}

export const receiverOperation = {
  operationId: 'receiveWebhook',
  tags: ['Incoming webhooks'],
  summary: 'Receive a payload',
  description:
    'Maps the payload onto the target entity, creates or updates the record, and starts the selected workflow.',
  security: [{ webhook: [] }],
  parameters: [
    { name: 'webhook_id', in: 'path' as const, required: true, schema: { type: 'string', format: 'uuid' } },
  ],
  requestBody: {
    description:
      'JSON and XML by any of their names are taken, `application/vnd.api+json` and `application/atom+xml` among them. Of a list of several records automatic mapping takes the first, with a warning in the log. An XML element is named below the root; attributes are taken as elements within it.',
    required: true,
    content: {
      'application/json': {
        schema: { type: ['object', 'array'] },
        example: { first_name: 'Ann', email: 'ann@example.com', company: 'Acme' },
      },
      'application/x-www-form-urlencoded': { schema: { type: 'object' } },
      'application/xml': { schema: { type: 'object' } },
      'text/xml': { schema: { type: 'object' } },
    },
  },
  responses: {
    '200': {
      description: 'Done, or skipped as a duplicate',
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['success', 'message', 'record_id', 'entity', 'action'],
            properties: {
              success: { const: true },
              message: { type: 'string' },
              record_id: { type: 'string', format: 'uuid' },
              entity: { enum: TARGETS.map((entity) => RECORD_KINDS[entity]) },
              action: { enum: ['created', 'updated', 'skipped'] },
            },
          },
          example: {
            success: true,
            message: 'contact created',
            record_id: '01890a5d-ac96-774b-bcce-b302099a8057',
            entity: 'contact',
            action: 'created',
          },
        },
      },
    },
    '400': failure('The payload cannot be read, or makes no valid record', 'validation_failed', {
      details: { email: 'Invalid email address' },
    }),
    '401': failure('The secret is missing or wrong', 'invalid_secret'),
    '403': failure('The webhook is inactive, or the address not on its whitelist', 'ip_not_allowed'),
    '404': failure('There is no such webhook', 'not_found'),
    '405': failure('Webhooks take POST', 'method_not_allowed'),
    '413': failure('The body is too large', 'payload_too_large'),
    '415': failure('The body is none of JSON, form and XML', 'unsupported_media_type'),
    '429': failure('The rate limit or the quota is exceeded: wait for Retry-After', 'rate_limited', {
      retry_after: 30,
    }),
    '500': failure('A fault of the service: nothing was written', 'internal_error'),
    '503': failure('The service is busy or starting: send it again after Retry-After', 'unavailable', {
      retry_after: 1,
    }),
  },
}
