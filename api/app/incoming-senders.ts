import { z } from 'zod'
import { leastRole } from '../../db/model/access/roles.ts'
import { SENDERS } from '../../db/model/incoming/mapping/senders/index.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { verification } from './incoming-webhook-schemas.ts'

const senderSchema = z
  .object({
    object: z.literal('incoming_webhook_sender'),
    id: z.string().meta({ description: 'For `sender` of a new webhook.' }),
    name: z.string(),
    documentation: z.url(),
    verification,
    has_known_fields: z.boolean().meta({
      description:
        'Whether its payloads are mapped by the paths that they are known to have. Others are mapped by the names of their values.',
    }),
  })
  .meta({ id: 'IncomingWebhookSender' })

/** The senders that agx knows, from the table of automatic mapping. */
export const incomingSenderRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/webhooks/incoming/senders',
    role: leastRole('webhooks:read'),
    id: 'listIncomingWebhookSenders',
    tag: 'Incoming webhooks',
    summary: 'List the known senders of webhooks',
    description: 'A webhook that is created with `sender` is verified as its documentation says.',
    response: { status: 200, schema: listEnvelope(senderSchema) },
    handler: async () =>
      wholeList(
        [...SENDERS].map(([id, { name, documentation, verification, matches }]) => ({
          object: 'incoming_webhook_sender' as const,
          id,
          name,
          documentation,
          verification,
          has_known_fields: matches !== undefined,
        })),
      ),
  }),
]
