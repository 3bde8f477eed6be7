import { WRITES } from '../../db/model/incoming/types.ts'
import { RECORD_KINDS, TARGET_KINDS } from '../../workflows/shared/record-kinds.ts'

/** The receiver of incoming webhooks: an operation outside of both route tables, with its own errors and secret. */
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

/** What a node `respond` of a workflow answers. */
const OF_WORKFLOW = {
  'application/json': {
    schema: { $ref: '#/components/schemas/ReceiverWorkflowAnswer' },
    example: { text: 'Order A-7 is on its way.' },
  },
  'text/plain': { schema: { type: 'string' }, example: 'Order A-7 is on its way.' },
  'text/xml': {
    schema: { type: 'string' },
    example: '<Response><Message>Order A-7 is on its way.</Message></Response>',
  },
}

const RESULTS = {
  type: 'array',
  description: 'For a batch: the outcome of each record, with the answer it would have had alone.',
  items: {
    type: 'object',
    required: ['index', 'success', 'message'],
    properties: {
      index: { type: 'integer', description: 'The position in the batch, from 0.' },
      success: { type: 'boolean' },
      message: { type: 'string' },
    },
    additionalProperties: true,
  },
}

export const receiverShapes = {
  ReceiverResult: {
    type: 'object',
    required: ['success', 'message', 'record_id', 'entity', 'action'],
    properties: {
      success: { type: 'boolean', const: true },
      message: { type: 'string' },
      record_id: {
        type: ['string', 'null'],
        format: 'uuid',
        description:
          'The record; null for the set-up request of a sender, which writes nothing, and without records.',
      },
      entity: {
        type: ['string', 'null'],
        enum: [...TARGET_KINDS.map((kind) => RECORD_KINDS[kind]), null],
        description: 'Null if the webhook writes no record.',
      },
      action: { type: 'string', enum: WRITES },
      warnings: {
        type: 'array',
        items: { type: 'string' },
        description:
          'Ignored parts of the payload: invalid values that automatic mapping guessed, and further records of a list. Absent if there are none.',
      },
      results: RESULTS,
    },
  },
  ReceiverChallenge: {
    anyOf: [
      {
        type: 'object',
        description: 'The answer to Slack.',
        required: ['challenge'],
        properties: { challenge: { type: 'string' } },
      },
      {
        type: 'object',
        description: 'The answer to Zoom.',
        required: ['plainToken', 'encryptedToken'],
        properties: { plainToken: { type: 'string' }, encryptedToken: { type: 'string' } },
      },
    ],
  },
  ReceiverSignedChallenge: {
    type: 'object',
    required: ['challengeCode', 'challengeResponse'],
    properties: { challengeCode: { type: 'string' }, challengeResponse: { type: 'string' } },
  },
  ReceiverWorkflowAnswer: {
    description: 'Any value: the `json` of a node `respond` of a workflow that the request started.',
  },
  ReceiverError: {
    type: 'object',
    required: ['success', 'error', 'message'],
    properties: {
      success: { type: 'boolean', const: false },
      error: { type: 'string', description: 'A stable code for programs.' },
      message: { type: 'string', description: 'A description for people.' },
      details: {
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'The reason for each invalid field.',
      },
      retry_after: { type: 'integer', description: 'Seconds to wait before a retry.' },
      results: RESULTS,
    },
  },
}

const WEBHOOK_ID = {
  name: 'webhook_id',
  in: 'path' as const,
  required: true as const,
  description: 'The id of the incoming webhook.',
  schema: { type: 'string', format: 'uuid' },
}

const TOKEN = {
  name: 'token',
  in: 'query' as const,
  description:
    'The secret, for the verification `token`. It can also be a last segment of the path: `/webhooks/incoming/{webhook_id}/{token}`.',
  schema: { type: 'string' },
}

export const receiverOperation = {
  operationId: 'receiveWebhook',
  tags: ['Incoming webhooks'],
  summary: 'Receive a payload',
  description:
    'Maps the payload to a record of the target entity, creates or updates the record by the deduplication rule, and starts the selected workflow, which may answer. A set-up request of a known sender (a ping, a challenge with GET or POST) is answered and writes nothing.',
  security: [{ webhookSecret: [] }],
  parameters: [WEBHOOK_ID, TOKEN],
  requestBody: {
    description:
      'JSON, a form, a multipart form or XML. A file of a multipart form is its name. Types with the suffix +json or +xml are accepted too. A JSON array is a batch; in automatic mapping so is an envelope that holds nothing else of a record (`data`, `batch`, `events`, …). It has at most 1,000 records: each is mapped, deduplicated, logged and answered alone, unless a rule names an item of the list. Paths into XML begin below the root element; attributes are mapped like child elements.',
    required: true,
    content: {
      'application/json': {
        schema: { type: ['object', 'array'] },
        example: { first_name: 'Ann', email: 'ann@example.com', company: 'Acme' },
      },
      'application/x-www-form-urlencoded': { schema: { type: 'object' } },
      'multipart/form-data': { schema: { type: 'object' } },
      'application/xml': { schema: { type: 'object' } },
      'text/xml': { schema: { type: 'object' } },
    },
  },
  responses: {
    '200': {
      description:
        'The payload was accepted, or skipped as a duplicate; the response to a challenge; or, if `response_wait` of the webhook is set, the answer of a workflow.',
      content: {
        ...OF_WORKFLOW,
        'application/json': {
          schema: {
            anyOf: [
              { $ref: '#/components/schemas/ReceiverResult' },
              { $ref: '#/components/schemas/ReceiverChallenge' },
              { $ref: '#/components/schemas/ReceiverWorkflowAnswer' },
            ],
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
    '2XX': { description: 'The answer of a workflow with another status.', content: OF_WORKFLOW },
    '4XX': { description: 'The same; the payload was accepted.', content: OF_WORKFLOW },
    '400': failure('The payload is malformed or does not map to a valid record.', 'validation_failed', {
      details: { email: 'must be an email address, such as ada@example.com' },
    }),
    '401': failure(
      'The secret or signature is wrong. `missing_secret`: it is missing. `stale_timestamp`: it is right, but too old.',
      'invalid_secret',
    ),
    '403': failure('The webhook is inactive, or the IP address is not on its whitelist.', 'ip_not_allowed'),
    '404': failure('The webhook does not exist.', 'not_found'),
    '405': failure('Webhooks accept POST only.', 'method_not_allowed'),
    '413': failure('The body is too large.', 'payload_too_large'),
    '415': failure('The body is not JSON, a form or XML.', 'unsupported_media_type'),
    '429': failure('The rate limit or the quota is exceeded. Retry after Retry-After.', 'rate_limited', {
      retry_after: 30,
    }),
    '500': failure('An unexpected error of the service. Nothing was written.', 'internal_error'),
    '502': failure(
      'With `response_wait`: the payload was accepted, but a workflow that it started failed or was cancelled, and none answered.',
      'workflow_failed',
    ),
    '503': failure('The service is busy or starting. Retry after Retry-After.', 'unavailable', {
      retry_after: 1,
    }),
  },
}

/** What some senders ask with GET when the webhook is set up. */
export const challengeOperation = {
  operationId: 'answerWebhookChallenge',
  tags: ['Incoming webhooks'],
  summary: 'Answer a challenge',
  description:
    "Answers the set-up requests that senders make with GET: that of Meta, with the secret as `hub.verify_token`, gets the text of `hub.challenge`; that of LinkedIn gets its `challengeCode`, signed with the secret; with the verification `token` (Mailchimp and others), any GET of the URL with its token gets 200. Writes only a log entry. Any other GET gets a 405; an address's of a minute share a log entry.",
  security: [],
  parameters: [
    WEBHOOK_ID,
    TOKEN,
    ...[
      ['hub.mode', 'From Meta: `subscribe`.'],
      ['hub.challenge', 'From Meta: the text to answer.'],
      ['hub.verify_token', 'From Meta: the secret.'],
      ['challengeCode', 'From LinkedIn: the UUID to sign.'],
    ].map(([name, description]) => ({
      name: name!,
      in: 'query' as const,
      description: description!,
      schema: { type: 'string' },
    })),
  ],
  responses: {
    '200': {
      description:
        'The text of the challenge, or its signature; without one, a result that says that nothing was written.',
      content: {
        'text/plain': { schema: { type: 'string' }, example: '1158201444' },
        'application/json': {
          schema: {
            anyOf: [
              { $ref: '#/components/schemas/ReceiverResult' },
              { $ref: '#/components/schemas/ReceiverSignedChallenge' },
            ],
          },
          example: {
            success: true,
            message: 'check of the URL: nothing was written',
            record_id: null,
            entity: 'contact',
            action: 'skipped',
          },
        },
      },
    },
    '401': failure('The token is missing or wrong.', 'invalid_secret'),
    '403': receiverOperation.responses['403'],
    '404': receiverOperation.responses['404'],
    '405': failure('The request is no challenge.', 'method_not_allowed'),
    '429': receiverOperation.responses['429'],
    '500': receiverOperation.responses['500'],
    '503': receiverOperation.responses['503'],
  },
}
