import { z } from 'zod'
import { listMembers } from '../../db/access/members.ts'
import { MEMBER_ROLES } from '../../db/model/access/roles.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'

const user = z
  .object({
    object: z.literal('user'),
    id: z.uuid(),
    name: z.string(),
    role: z.enum(MEMBER_ROLES),
  })
  .meta({ id: 'User' })

export const userRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/users',
    scope: 'any',
    id: 'listUsers',
    tag: 'Account',
    summary: 'List users',
    description:
      'Lists the members of the organization, for `owner_id` of records, `assignee_id` of tasks and `author_id` of notes.',
    query: z.strictObject({
      ...pageControls,
      q: z.string().max(200).optional().describe('Every word must occur in the name.'),
      email: z.string().max(254).optional().describe('The whole email address.'),
    }),
    response: { status: 200, schema: listEnvelope(user) },
    handler: async ({ query, tenant }) => {
      const { limit, cursor, q, email } = query
      const offset = offsetOf(query)
      const page = await tenant((tx) => listMembers(tx, { limit, cursor, offset }, { q, email }))
      return presentList({ ...page, data: page.data.map((one) => ({ object: 'user', ...one })) })
    },
  }),
]
