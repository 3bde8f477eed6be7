import { z } from 'zod'
import {
  type Erasure,
  eraseContact,
  getErasure,
  listErasures,
  previewErasure,
} from '../../db/erasure/erasures.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { actor } from '../../db/model/records/schemas.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import type { Scope } from '../http/scopes.ts'
import { confirmation } from './confirmation.ts'
import { recordParams } from './record-shapes.ts'

/** A receipt lists what still names the person, of whatever kind. */
const READ: Scope[] = [
  ...kindNames.map((kind): Scope => `${kind}:read`),
  'workflows:read',
  'knowledge:read',
  'webhooks:read',
]

const newErasure = z
  .strictObject({
    by_name: z
      .boolean()
      .default(false)
      .describe(
        'Whether the whole name alone identifies the person. Otherwise what only has the name is listed.',
      ),
    confirm: z.boolean().default(false),
  })
  .meta({ id: 'EraseRequest' })

const preview = confirmation(
  'ErasurePreview',
  'erasure_preview',
  z.object({
    contacts: z.int().describe('With those that were merged into it.'),
    consents: z.int(),
    history: z.int(),
    files: z.int(),
    deliveries: z.int(),
    runs: z.int().describe('About the contact: they are deleted.'),
    open_runs: z.int().describe('Of these, the open ones: cancelled first.'),
    linked: z.int().describe('Notes, activities and tasks: the receipt lists them for review.'),
  }),
)

const erasure = z
  .object({
    object: z.literal('erasure'),
    id: z.uuid(),
    contact_id: z.uuid(),
    status: z.enum(['running', 'completed']),
    erased: z.record(z.string(), z.int()).describe('Rows by what they are.'),
    to_review: z
      .array(
        z.object({
          object: z.string(),
          id: z.string(),
          reason: z
            .enum(['key', 'name', 'linked'])
            .describe('It has an address or a number; only the name; or it was linked with the contact.'),
        }),
      )
      .describe('What people must decide, at most 1,000.'),
    review_count: z.int(),
    waiting: z.int().describe('Runs and jobs with the person that must end before.'),
    created_by: actor,
    created_at: z.date(),
    ended_at: z.date().nullable(),
  })
  .meta({ id: 'Erasure' })

const tag = 'Contacts'

const present = (row: Erasure) => ({
  object: 'erasure' as const,
  ...row,
  status: row.ended_at ? ('completed' as const) : ('running' as const),
})

/** The erasure of a person, and its receipts. */
export const erasureRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/objects/contacts/{entity_id}/erase',
    scope: [
      'contacts:write',
      ...READ.filter((scope) => !/^(contacts|webhooks|workflows):/.test(scope)),
      'workflows:run',
      'webhooks:write',
    ],
    id: 'eraseContact',
    tag,
    summary: 'Erase a person',
    description: `Deletes a contact for good, also a deleted one, with what was merged into it, history, files and deliveries,
and cancels and deletes the runs about it; no event is raised. Workers then search all that the organization stores for
the person's addresses, numbers and names: events, runs, logs, stored answers and the files of imports and exports lose
them; texts, documents, settings and other records are listed in \`to_review\`. Without \`confirm: true\` the response
is a preview.`,
    params: recordParams,
    body: newErasure,
    response: { status: 201, schema: erasure, preview: preview.schema },
    example: { confirm: true },
    handler: async ({ params: { entity_id }, body, tenant, asPreview }) => {
      if (!body.confirm) {
        asPreview()
        return preview.answer(await tenant((tx) => previewErasure(tx, entity_id)))
      }
      return tenant(async (tx) =>
        present(await getErasure(tx, await eraseContact(tx, entity_id, { byName: body.by_name }))),
      )
    },
  }),
  route({
    method: 'GET',
    path: '/erasures',
    scope: READ,
    id: 'listErasures',
    tag,
    summary: 'List erasures',
    description: 'The receipts, newest first. They name nobody, and are kept.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(erasure) },
    handler: async ({ query, tenant }) => {
      const page = await tenant((tx) => listErasures(tx, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map(present) })
    },
  }),
  route({
    method: 'GET',
    path: '/erasures/{erasure_id}',
    scope: READ,
    id: 'getErasure',
    tag,
    summary: 'Retrieve an erasure',
    params: z.object({ erasure_id: z.uuid().toLowerCase() }),
    response: { status: 200, schema: erasure },
    handler: async ({ params, tenant }) => present(await tenant((tx) => getErasure(tx, params.erasure_id))),
  }),
]
