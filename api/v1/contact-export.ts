import { z } from 'zod'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { recordSchema } from '../../db/model/records/schemas.ts'
import { TIMELINE_TYPES } from '../../db/model/records/timeline.ts'
import { getRecord } from '../../db/records/read.ts'
import { listFiles } from '../../db/stored-files/files.ts'
import { timelineEntries } from '../../db/timeline/entries.ts'
import { listTimeline } from '../../db/timeline/list.ts'
import type { AppDeps } from '../deps.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import type { Scope } from '../http/scopes.ts'
import { fileSchema, presentFile } from './files.ts'
import { recordParams } from './record-shapes.ts'
import { presentTimelineEntry, timelineEntry } from './timeline.ts'

/** Entries of one transaction. */
const PAGE = 200

/** Everything that an entry can be about: an export that left some out would not say so. */
const NEEDED: Scope[] = [...kindNames.map((kind): Scope => `${kind}:read`), 'workflows:read', 'webhooks:read']

const contactExport = z
  .object({
    object: z.literal('contact_export'),
    exported_at: z.iso.datetime(),
    contact: recordSchema('contacts'),
    files: z.array(fileSchema),
    timeline: z.array(timelineEntry),
  })
  .meta({ id: 'ContactExport' })

/** What is held of a person, as the right of access asks for. */
export const contactExportRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/objects/contacts/{entity_id}/export',
    scope: NEEDED,
    id: 'exportContact',
    tag: 'Contacts',
    summary: 'Export what is held of a contact',
    description:
      'A JSON file: the contact as `contact`, its files as `files` (download their contents by their ids), and as `timeline` all that its timeline has: associated records with their texts, changes with old and new values, runs and deliveries. Payloads of runs, deliveries and incoming webhooks are in their own logs.',
    params: recordParams,
    response: { status: 200, file: 'application/json', schema: contactExport, description: 'The file.' },
    handler: async ({ params: { entity_id }, tenant, deps }) => {
      const contact = await tenant((tx) => getRecord(tx, 'contacts', entity_id))
      const head = { object: 'contact_export', exported_at: new Date().toISOString(), contact }
      return { name: `contact-${entity_id}.json`, content: contentOf(tenant, entity_id, head, deps.config) }
    },
  }),
]

/** The JSON in pieces, each read in a separate transaction. If one fails, the file ends before its last bracket. */
async function* contentOf(
  tenant: RouteRequest['tenant'],
  id: string,
  head: object,
  config: AppDeps['config'],
): AsyncGenerator<string, void, void> {
  yield `${JSON.stringify(head).slice(0, -1)},"files":[`
  for await (const piece of items((cursor) => tenant((tx) => filesOf(tx, id, cursor)))) yield piece
  yield '],"timeline":['
  for await (const piece of items((cursor) => tenant((tx) => entriesOf(tx, id, cursor, config)))) yield piece
  yield ']}\n'
}

type Tx = Parameters<Parameters<RouteRequest['tenant']>[0]>[0]

interface Items {
  data: object[]
  next_cursor: string | null
}

async function filesOf(tx: Tx, id: string, cursor: string | undefined): Promise<Items> {
  const { data, next_cursor } = await listFiles(tx, 'contacts', id, { limit: PAGE, offset: 0, cursor })
  return { data: data.map(presentFile), next_cursor }
}

async function entriesOf(
  tx: Tx,
  id: string,
  cursor: string | undefined,
  config: AppDeps['config'],
): Promise<Items> {
  const query = { types: TIMELINE_TYPES, limit: PAGE, cursor }
  const { places, next_cursor } = await listTimeline(tx, 'contacts', id, query)
  const entries = await timelineEntries(tx, 'contacts', id, places)
  return { data: entries.map((entry) => presentTimelineEntry(entry, config)), next_cursor }
}

/** The items of a list of JSON, separated by commas. */
async function* items(
  read: (cursor: string | undefined) => Promise<Items>,
): AsyncGenerator<string, void, void> {
  let isFirst = true
  for (let cursor: string | undefined; ; ) {
    const { data, next_cursor } = await read(cursor)
    if (data.length > 0) yield `${isFirst ? '' : ','}${data.map((one) => JSON.stringify(one)).join(',')}`
    isFirst &&= data.length === 0
    if (next_cursor === null) return
    cursor = next_cursor
  }
}
