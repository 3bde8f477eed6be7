import { z } from 'zod'
import { changeRole, type FullMember, listFullMembers } from '../../db/access/members.ts'
import { removeMember } from '../../db/access/remove-member.ts'
import { MEMBER_ROLES } from '../../db/model/access/roles.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const params = z.object({ user_id: z.uuid() })

const memberSchema = z
  .object({
    object: z.literal('member'),
    id: z.uuid(),
    name: z.string(),
    email: z.string(),
    role: z.enum(MEMBER_ROLES),
    created_at: z.iso.datetime().meta({ description: 'The time when the user joined the organization.' }),
  })
  .meta({ id: 'Member' })

const present = (member: FullMember) => ({ object: 'member', ...member })

export const memberRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/members',
    role: 'member',
    id: 'listMembers',
    tag: 'Members',
    summary: 'List members',
    description: 'Oldest first.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(memberSchema) },
    async handler({ query, tenant }) {
      const page = { limit: query.limit, cursor: query.cursor, offset: offsetOf(query) }
      const found = await tenant((tx) => listFullMembers(tx, page))
      return presentList({ ...found, data: found.data.map(present) })
    },
  }),
  appRoute({
    method: 'PATCH',
    path: '/members/{user_id}',
    role: 'admin',
    id: 'updateMember',
    tag: 'Members',
    summary: "Change a member's role",
    description:
      'Applies to the next request of the member. Only owners give and take the role `owner`, and one owner remains. Links that a demoted member has created (invitations, password resets) no longer work.',
    params,
    body: z.strictObject({ role: z.enum(MEMBER_ROLES) }).meta({ id: 'MemberUpdate' }),
    example: { role: 'admin' },
    response: { status: 200, schema: memberSchema },
    handler: async ({ params, body, tenant }) =>
      present(await tenant((tx) => changeRole(tx, params.user_id, body.role))),
  }),
  appRoute({
    method: 'DELETE',
    path: '/members/{user_id}',
    role: 'admin',
    id: 'removeMember',
    tag: 'Members',
    summary: 'Remove a member',
    description:
      'Ends the sessions of the member in the organization at once. Only owners remove owners, and one owner remains. API keys that the member has created remain. What the member owns or is assigned goes to the users of `hand_over`; 409 without it if there is such a record. Authors of notes stay.',
    params,
    query: z.strictObject({
      hand_over: z
        .string()
        .max(4_000)
        .transform((text) => (text === 'nobody' ? [] : text.split(',')))
        .pipe(z.array(z.uuid('must be ids of users, separated by commas, or nobody').toLowerCase()).max(100))
        .optional()
        .meta({
          type: 'string',
          description:
            'The users who get the records of the member: one, or several separated by commas, who take turns (round robin); `nobody` clears the fields.',
        }),
    }),
    response: deletion(
      'member',
      {
        id: z.uuid(),
        hand_over_jobs: z
          .array(z.uuid())
          .meta({ description: 'The bulk jobs that hand over, one for each field; each can be undone.' }),
      },
      'RemovedMember',
    ),
    async handler({ params, query, tenant }) {
      const hand_over_jobs = await tenant((tx) => removeMember(tx, params.user_id, query.hand_over))
      return { object: 'member', id: params.user_id, deleted: true, hand_over_jobs }
    },
  }),
]
