import { z } from 'zod'
import { createKey, getKey, listKeys, revokeKey, rotateKey, updateKey } from '../../db/access/keys.ts'
import { isIpOrRange } from '../http/client-ip.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { SCOPES } from '../http/scopes.ts'

const params = z.object({ key_id: z.uuid() })

const values = {
  name: z.string().trim().min(1).max(100),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .transform((scopes) => [...new Set(scopes)])
    .meta({
      description:
        'The scopes of the key. Caution: with `workflows:author` or `workflows:run` a key can access all records, because a workflow acts for the organization, not for the key that starts it.',
    }),
  expires_at: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .refine((date) => date > new Date(), 'must be in the future')
    .nullable(),
  ip_allowlist: z.array(z.string().refine(isIpOrRange, 'is neither an IP address nor a CIDR range')).max(100),
}

const keySchema = z
  .object({
    object: z.literal('key'),
    id: z.uuid(),
    name: z.string(),
    prefix: z.string(),
    scopes: z.array(z.string()),
    ip_allowlist: z.array(z.string()),
    expires_at: z.iso.datetime().nullable(),
    revoked_at: z.iso.datetime().nullable(),
    last_used_at: z.iso.datetime().nullable(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Key' })
const withSecret = keySchema
  .extend({
    key: z.string().meta({ description: 'The secret. Returned only once.' }),
  })
  .meta({ id: 'KeyWithSecret' })

export const keyRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/keys',
    role: 'admin',
    id: 'listKeys',
    tag: 'Keys',
    summary: 'List keys',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(keySchema) },
    handler: ({ query, tenant }) =>
      tenant(async (tx) => presentList(await listKeys(tx, { ...query, offset: offsetOf(query) }))),
  }),
  appRoute({
    method: 'POST',
    path: '/keys',
    role: 'admin',
    id: 'createKey',
    tag: 'Keys',
    summary: 'Create a key',
    description:
      'The response has the secret. It is returned only once, and again to a repeat with the same Idempotency-Key.',
    secretAnswer: true,
    body: z
      .strictObject({
        name: values.name,
        scopes: values.scopes,
        expires_at: values.expires_at.default(null),
        ip_allowlist: values.ip_allowlist.default([]),
      })
      .meta({ id: 'KeyCreate' }),
    response: { status: 201, schema: withSecret },
    example: { name: 'Website', scopes: ['contacts:write', 'workflows:run'] },
    handler: ({ body, tenant }) => tenant((tx) => createKey(tx, body)),
  }),
  appRoute({
    method: 'GET',
    path: '/keys/{key_id}',
    role: 'admin',
    id: 'getKey',
    tag: 'Keys',
    summary: 'Retrieve a key',
    params,
    response: { status: 200, schema: keySchema },
    handler: ({ params, tenant }) => tenant((tx) => getKey(tx, params.key_id)),
  }),
  appRoute({
    method: 'PATCH',
    path: '/keys/{key_id}',
    role: 'admin',
    id: 'updateKey',
    tag: 'Keys',
    summary: 'Update a key',
    description: 'Applies to the next request.',
    params,
    body: z.strictObject(values).partial().meta({ id: 'KeyUpdate' }),
    example: { scopes: ['contacts:read', 'deals:read'] },
    response: { status: 200, schema: keySchema },
    handler: ({ params, body, tenant }) => tenant((tx) => updateKey(tx, params.key_id, body)),
  }),
  appRoute({
    method: 'DELETE',
    path: '/keys/{key_id}',
    role: 'admin',
    id: 'revokeKey',
    tag: 'Keys',
    summary: 'Revoke a key',
    description: 'Applies at once to all clients of the key. The key remains in the list.',
    params,
    response: {
      status: 200,
      schema: keySchema.extend({ deleted: z.literal(true) }).meta({ id: 'RevokedKey' }),
    },
    handler: ({ params, tenant }) =>
      tenant(async (tx) => ({ ...(await revokeKey(tx, params.key_id)), deleted: true })),
  }),
  appRoute({
    method: 'POST',
    path: '/keys/{key_id}/rotate',
    role: 'admin',
    id: 'rotateKey',
    tag: 'Keys',
    summary: 'Rotate a key',
    description: 'Returns a new secret. The old one expires at once, or after `overlap_hours`.',
    params,
    secretAnswer: true,
    body: z
      .strictObject({ overlap_hours: z.number().int().min(0).max(24).default(0) })
      .meta({ id: 'KeyRotation' })
      .prefault({}),
    example: { overlap_hours: 24 },
    response: { status: 200, schema: withSecret },
    handler: ({ params, body, tenant }) => tenant((tx) => rotateKey(tx, params.key_id, body.overlap_hours)),
  }),
]
