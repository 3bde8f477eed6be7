import { z } from 'zod'
import { leastRole } from '../../db/model/access/roles.ts'
import { ALL_SENDERS, SENDERS } from '../../db/model/incoming/mapping/senders/index.ts'
import { TARGET_ENTITIES, targetEntityOf } from '../../db/model/incoming/target-entity.ts'
import { TARGET_KINDS } from '../../workflows/shared/record-kinds.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { describeDelivery } from '../incoming/delivery-id.ts'
import { verification } from './incoming-webhook-schemas.ts'

const senderSchema = z
  .object({
    object: z.literal('incoming_webhook_sender'),
    id: z.string().meta({ description: 'For `sender` of a new webhook.' }),
    name: z.string(),
    documentation: z.url(),
    verification,
    delivery_id: z.string().meta({
      description: 'By what a request is found to repeat another one, which then gets its answer.',
    }),
    dedupe_window: z.int().meta({ description: 'The default of the setting.' }),
    answers_ping: z
      .boolean()
      .meta({ description: 'Whether it has a request of its own that tests the webhook.' }),
    maps: z.array(z.enum(TARGET_ENTITIES)).meta({
      description: 'The target entities for which the paths of its payloads are known.',
    }),
    has_known_fields: z.boolean().meta({
      description:
        'Whether its payloads are mapped by the paths that they are known to have. Others are mapped by the names of their values.',
    }),
    sends_batches: z.boolean().meta({ description: 'Whether a request may have several records.' }),
    person: z
      .string()
      .nullable()
      .meta({ description: 'The person of whom a contact is made: `the attendee; never the organizer`.' }),
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
        describedSenders().map((sender) => ({ object: 'incoming_webhook_sender' as const, ...sender })),
      ),
  }),
]

/** The known senders, by their id. */
export const describedSenders = () =>
  [...SENDERS].map(([id, sender]) => ({
    id,
    name: sender.name,
    documentation: sender.documentation,
    verification: sender.verification,
    delivery_id: describeDelivery(sender),
    dedupe_window: sender.dedupeWindow ?? 0,
    answers_ping: sender.isPing !== undefined,
    maps: kindsOf(sender.name),
    has_known_fields: sender.guessIn !== 'anywhere',
    sends_batches: sender.sendsBatches ?? false,
    person: sender.person ?? null,
  }))

/** Variants of a sender know different kinds. */
const kindsOf = (sender: string) =>
  TARGET_KINDS.filter((kind) =>
    ALL_SENDERS.some(
      ({ name, fields }) => name === sender && fields?.[kind] && Object.keys(fields[kind]).length > 0,
    ),
  ).map(targetEntityOf)
