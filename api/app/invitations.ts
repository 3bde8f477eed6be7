import { z } from 'zod'
import {
  acceptInvitation,
  createInvitation,
  INVITATION_DAYS,
  invitedEmail,
  listInvitations,
  MAX_INVITATIONS,
  withdrawInvitation,
} from '../../db/access/invitations.ts'
import { LINK_PATHS } from '../../db/access/link-tokens.ts'
import { MEMBER_ROLES } from '../../db/model/access/roles.ts'
import type { AppDeps } from '../deps.ts'
import { baseUrl } from '../http/base-url.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { email, newPassword } from './account.ts'
import { HOUR, limit, limitAttempts } from './limit-attempts.ts'
import { mailKeyOf } from './mail-key.ts'
import { answerSession, clientOf, replacedSession, sessionSchema } from './session.ts'

const invitationSchema = z
  .object({
    object: z.literal('invitation'),
    id: z.uuid(),
    email: z.string(),
    role: z.enum(MEMBER_ROLES),
    invited_by: z.uuid().nullable(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    mail: z
      .object({
        sent_at: z.iso.datetime().nullable(),
        problem: z.string().nullable().meta({ description: 'The error of the last attempt.' }),
      })
      .nullable()
      .meta({
        id: 'InvitationMail',
        description:
          'The mail with the link; null if the service sends no mails. It is queued until `sent_at`.',
      }),
  })
  .meta({ id: 'Invitation' })

/** Mails cannot be recalled: an organization must not use the service to send many mails, nor many to one address. */
async function limitMails(deps: AppDeps, organizationId: string, address: string): Promise<void> {
  const period = HOUR
  await limit(deps, { subject: `invitation mails of ${organizationId}`, limit: 100, period })
  const to = `invitation mails to ${address.toLowerCase()}`
  await limit(deps, { subject: `${to} of ${organizationId}`, limit: 5, period })
  // Higher, so that one organization alone cannot keep the others from inviting the person.
  await limit(deps, { subject: to, limit: 20, period })
}

const withLink = invitationSchema
  .extend({
    token: z.string().optional(),
    link: z.url().optional().meta({
      description:
        'The link for the invited person: a browser shows a form there, which sends `POST` with name and password. Share it with nobody else. Returned only here, and only if the service sends no mails.',
    }),
  })
  .meta({ id: 'InvitationWithLink' })

export const invitationRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/invitations',
    role: 'admin',
    id: 'listInvitations',
    tag: 'Members',
    summary: 'List invitations',
    description: 'Lists the open invitations and those that expired in the last 30 days, newest first.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(invitationSchema) },
    async handler({ query, tenant }) {
      const page = { limit: query.limit, cursor: query.cursor, offset: offsetOf(query) }
      const found = await tenant((tx) => listInvitations(tx, page))
      return presentList({ ...found, data: found.data.map((one) => ({ object: 'invitation', ...one })) })
    },
  }),
  appRoute({
    method: 'POST',
    path: '/invitations',
    role: 'admin',
    id: 'createInvitation',
    tag: 'Members',
    summary: 'Invite a person',
    description: `Mails a link to the invited person, or returns it if the service sends no mails. The link works once, within ${INVITATION_DAYS} days. The invitation replaces an earlier invitation of the same address. Only owners invite owners. An organization has at most ${MAX_INVITATIONS} invitations.`,
    idempotent: false,
    body: z.strictObject({ email, role: z.enum(MEMBER_ROLES) }).meta({ id: 'InvitationCreate' }),
    example: { email: 'grace@example.com', role: 'member' },
    response: { status: 201, schema: withLink },
    async handler({ body, deps, caller, tenant }) {
      const mailKey = mailKeyOf(deps)
      if (mailKey) await limitMails(deps, caller.organization.id, body.email)
      const { invitation, token } = await tenant((tx) => createInvitation(tx, body, mailKey))
      const link = baseUrl(deps) + LINK_PATHS.invitation(token)
      return { object: 'invitation', ...invitation, ...(!mailKey && { token, link }) }
    },
  }),
  appRoute({
    method: 'DELETE',
    path: '/invitations/{invitation_id}',
    role: 'admin',
    id: 'withdrawInvitation',
    tag: 'Members',
    summary: 'Withdraw an invitation',
    description: 'Its link no longer works.',
    params: z.object({ invitation_id: z.uuid() }),
    response: deletion('invitation', undefined, 'WithdrawnInvitation'),
    async handler({ params, tenant }) {
      await tenant((tx) => withdrawInvitation(tx, params.invitation_id))
      return { object: 'invitation', id: params.invitation_id, deleted: true }
    },
  }),
  appRoute({
    method: 'POST',
    path: '/invitations/{token}/accept',
    role: 'public',
    id: 'acceptInvitation',
    tag: 'Members',
    summary: 'Accept an invitation',
    description:
      'Joins the organization and signs in. If the invited address has no account, `name` and `password` create one; otherwise `password` is that of the account. 401 for a wrong password, and without `name` also for an address without an account.',
    params: z.object({ token: z.string() }),
    idempotent: false,
    body: z
      .strictObject({ name: z.string().trim().min(1).max(200).optional(), password: newPassword })
      .meta({ id: 'InvitationAcceptance' }),
    example: { name: 'Grace Hopper', password: 'correct horse battery staple' },
    response: { status: 201, schema: sessionSchema },
    async handler(request) {
      const { params, body, deps } = request
      const { system } = deps.db
      await limitAttempts(deps, request.clientIp, await invitedEmail(system, params.token))
      return answerSession(
        request,
        await acceptInvitation(system, params.token, body, clientOf(request), replacedSession(request)),
      )
    },
  }),
]
