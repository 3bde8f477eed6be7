/** The parts of the OpenAPI document outside of its operations: introduction, headers, security schemes. */

export const DESCRIPTION = `A REST API for business records and durable workflows. Requests and responses are JSON in UTF-8. Times are RFC 3339 in UTC, money is a decimal string beside an ISO 4217 currency, ids are UUIDs.

## Authentication

Operations under \`/v1\` take an API key: \`Authorization: Bearer agx_…\`. A key belongs to one organization and has scopes such as \`contacts:read\`; a missing scope gives 403. Operations under \`/app\` (the settings, and those of \`/v1\` under \`/app/v1\`) take the session cookie of \`POST /app/session\`; writes also send its \`csrf_token\` as \`X-CSRF-Token\`. Incoming webhooks take the \`X-Webhook-Secret\` of the webhook.

## Errors

Every error has one shape: \`error.type\` is a stable code for programs, \`error.message\` is for people. A 422 lists every issue in \`detail\`. Unknown parameters and body members are refused with 422, never ignored. An id of another organization gives 404, like an unknown id. Every response has an \`X-Request-Id\`; a UUID or ULID that the client sends is used.

## Lists

A list returns \`data\`, \`has_more\` and \`next_cursor\`. For the next page send \`next_cursor\` as \`cursor\` with the same filters and sort; or send \`offset\`. \`cursor\` and \`offset\` are mutually exclusive (400). \`limit\` is 1 to 200, by default 50. \`total\` is exact up to 10,000 matches and estimated above (\`count\`).

**Filters** are parameters named like a field: \`stage=won\` compares for equality, \`amount[gte]=1000\` uses an operator, \`custom_fields.tier=gold\` names a custom field. A repeated parameter adds a filter. \`match=any\` combines filters with OR. Text comparison is case-insensitive; equality compares with the stored form, so \`phone=%2B41 44 668 18 00\` finds \`+41446681800\`. Amounts compare by their value in the currency of the organization (\`/v1/exchange-rates\`), unless \`currency\` is filtered by one. A date without a time is the whole day in the time zone of the organization, or in \`time_zone\`; \`created_at=last_7_days\` and \`due_at=today\` are relative to today.

**Speed** does not depend on the number of records for lists sorted by \`created_at\` or \`updated_at\`, for filters by id, email, domain, owner or reference that match few records, and for \`q\`. Other sorts read every matching record.

## Versions of a record

Records and definitions have a \`version\`, returned as \`ETag\`. A write with \`If-Match\` is refused with 412 if the version has changed.

## Idempotency

Writing operations accept an \`Idempotency-Key\` (at most 255 characters, kept for 24 hours). A retry with the same key, body and API key returns the stored response with \`Idempotency-Replayed: true\`. The same key with another body, or while the first request is in progress, gives 409 (if its process dies, for at most 3 seconds). Previews, refusals and 5xx responses are not stored. A response with a secret (a new webhook or key, a rotation) is stored encrypted, and returned again, with the secret, only to the API key or user of the first request.

## Rate limits

Requests count against a window of 60 seconds for the key and one for the organization. \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\` describe the window with fewer requests left, as \`RateLimit-Policy\` and \`RateLimit\` do in the form of the IETF (\`"key";r=599;t=42\`). Above the limit the response is 429 with \`Retry-After\`. So is one to an address that sends too many wrong keys.

## Versioning

The path prefix \`/v1\` is the version. Within it the API only grows: clients ignore response members that they do not know. A breaking change gets a new prefix, announced 12 months ahead by the headers \`Deprecation\` and \`Sunset\`.`

/** Response headers; each operation refers to the headers that it sends. */
export const responseHeaders = {
  'X-Request-Id': {
    description: 'The id of the request.',
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'The maximum number of requests in a window of 60 seconds.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Remaining': {
    description: 'The number of requests left in the window.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Reset': {
    description: 'The end of the window, in seconds since the Unix epoch.',
    schema: { type: 'integer' },
  },
  'Retry-After': { description: 'Seconds to wait before a retry.', schema: { type: 'integer' } },
  ETag: { description: 'The version in quotes, for `If-Match`.', schema: { type: 'string' } },
  'Idempotency-Replayed': {
    description: '`true` if this is the stored response of the Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
  },
  'Preference-Applied': { description: 'The applied `Prefer` header.', schema: { type: 'string' } },
}

export const securitySchemes = {
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `agx_…`.' },
  webhookSecret: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Webhook-Secret',
    description: 'The secret of the incoming webhook.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'agx_session',
    description:
      'The session cookie, set by `POST /app/session`. If the service is reached by https, its name is `__Host-agx_session`.',
  },
}
