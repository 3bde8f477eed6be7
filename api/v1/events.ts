import { z } from 'zod'
import { type CatalogueEvent, EVENTS } from '../../workflows/shared/events.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { eventExample, eventSchema, previousExample } from './event-examples.ts'

const eventShape = z
  .object({
    object: z.literal('event_type'),
    name: z.string(),
    description: z.string(),
    subject: z.string().meta({
      description:
        'The subject of the event: the kind of the record in `data`, or `list_membership`, `run`, `approval`, `webhook`; `any` for events that a node of a workflow raises.',
    }),
    data_schema: z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema of `data`.' }),
    example: z
      .object({
        id: z.uuid(),
        event: z.string(),
        created_at: z.iso.datetime(),
        data: z.record(z.string(), z.unknown()),
        previous: z.record(z.string(), z.unknown()).optional(),
      })
      .meta({ id: 'EventExample', description: 'The body of a delivery.' }),
  })
  .meta({ id: 'EventType' })

const CATALOGUE = wholeList(
  EVENTS.map(
    (event): z.input<typeof eventShape> => ({
      object: 'event_type',
      name: event.name,
      description: event.title,
      subject: event.subject,
      data_schema: eventSchema(event),
      example: deliveryExample(event),
    }),
  ),
)

export const eventRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/events',
    scope: 'any',
    id: 'listEvents',
    tag: 'Events',
    summary: 'List events',
    description: 'Lists the events of the service. Nodes of workflows can raise further events.',
    response: { status: 200, schema: listEnvelope(eventShape) },
    handler: async () => CATALOGUE,
  }),
]

function deliveryExample(event: CatalogueEvent) {
  const data = eventExample(event)
  const previous = previousExample(event)
  return {
    id: '01890a5d-ac96-774b-bcce-b302099a8060',
    event: event.name,
    created_at: '2026-01-31T09:30:00.000Z',
    data,
    ...(previous ? { previous } : {}),
  }
}
