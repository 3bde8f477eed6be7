import { z } from 'zod'
import { SERVICE_EVENTS } from '../../workflows/events.ts'
import { type Route, route } from '../http/route.ts'

const event = z.object({
  object: z.literal('event_type'),
  name: z.string(),
  description: z.string(),
  subject: z.string().meta({ description: 'What `data` is: a record of this kind, or a run.' }),
})

export const eventRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/events',
    scope: 'any',
    id: 'listEvents',
    tag: 'Events',
    summary: 'List events',
    description: 'The events that the service itself raises, and that an outgoing webhook can select.',
    response: { status: 200, schema: z.object({ object: z.literal('list'), data: z.array(event) }) },
    handler: async () => ({
      object: 'list',
      data: SERVICE_EVENTS.map(({ name, title, subject }) => ({
        object: 'event_type',
        name,
        description: title,
        subject,
      })),
    }),
  }),
]
