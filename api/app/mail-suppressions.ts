import { z } from 'zod'
import {
  addSuppression,
  listSuppressions,
  OWN_REASONS,
  removeSuppression,
} from '../../db/mails/suppressions.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const tag = 'Mail suppressions'

const suppressionSchema = z
  .object({
    object: z.literal('mail_suppression'),
    id: z.uuid(),
    address: z.string().meta({ description: 'In lower case.' }),
    reason: z.enum(OWN_REASONS).meta({
      description: '`unsubscribed` by the link in a mail, or `added` here.',
    }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'MailSuppression' })

const address = z.email('is not a mail address').max(320)

/** The addresses that get no mails of the organization's workflows. */
export const mailSuppressionRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/mail-suppressions',
    role: 'admin',
    id: 'listMailSuppressions',
    tag,
    summary: 'List suppressed addresses',
    description:
      'Lists the addresses that get no mails of the workflows of the organization, newest first. Addresses that bounced or whose owner complained are suppressed for all organizations by the operator, and are not in this list: the node that mails one of them says so.',
    query: z.strictObject({
      ...pageControls,
      address: z.string().max(320).optional().describe('This address, in any case.'),
      reason: z.enum(OWN_REASONS).optional().describe('Addresses with this reason.'),
    }),
    response: { status: 200, schema: listEnvelope(suppressionSchema) },
    async handler({ query, tenant }) {
      const { limit, cursor, offset: _, ...filter } = query
      const page = { limit, cursor, offset: offsetOf(query) }
      const found = await tenant((tx) => listSuppressions(tx, filter, page))
      return presentList({
        ...found,
        data: found.data.map((one) => ({ object: 'mail_suppression', ...one })),
      })
    },
  }),
  appRoute({
    method: 'POST',
    path: '/mail-suppressions',
    role: 'admin',
    id: 'addMailSuppression',
    tag,
    summary: 'Suppress an address',
    description:
      'The address gets no mails of the workflows of the organization. 409 if it is suppressed already. Mails about accounts, such as password resets, are sent anyway.',
    body: z.strictObject({ address }).meta({ id: 'MailSuppressionCreate' }),
    example: { address: 'grace@example.com' },
    response: { status: 201, schema: suppressionSchema },
    handler: async ({ body, tenant }) => ({
      object: 'mail_suppression',
      ...(await tenant((tx) => addSuppression(tx, body.address))),
    }),
  }),
  appRoute({
    method: 'DELETE',
    path: '/mail-suppressions/{suppression_id}',
    role: 'admin',
    id: 'removeMailSuppression',
    tag,
    summary: 'Mail an address again',
    description:
      'Removes an address from the list; the audit log keeps who did it. Only for a person who asked for it: `reason` says who unsubscribed.',
    params: z.object({ suppression_id: z.uuid() }),
    response: deletion('mail_suppression', undefined, 'RemovedMailSuppression'),
    async handler({ params, tenant }) {
      await tenant((tx) => removeSuppression(tx, params.suppression_id))
      return { object: 'mail_suppression', id: params.suppression_id, deleted: true }
    },
  }),
]
