/** What every operation of the OpenAPI document shares besides its errors. */

export const DESCRIPTION = `Business records and durable workflows. /v1 takes an API key, as \`Authorization: Bearer agx_…\`; /app, for the settings, a session.

Bodies and answers are JSON in UTF-8; times are RFC 3339 in UTC, money is a decimal as text. v1 only grows: ignore members of answers that you do not know. Unknown parameters and members of bodies are refused (422), never ignored.

Lists have one envelope, and pages go on by \`next_cursor\`. What is changed carries a version, as \`ETag\`, which \`If-Match\` insists on. Every writing operation takes an \`Idempotency-Key\`.

Requests are counted by key and by organization in windows of 60 s: \`X-RateLimit-Limit\`, \`-Remaining\` and \`-Reset\` are those of the one that has less left, and a 429 says \`Retry-After\`. Every answer has an \`X-Request-Id\`.`

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
