import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { LINK_PATHS } from '../../db/access/link-tokens.ts'
import {
  createPasswordReset,
  isMemberElsewhere,
  RESET_HOURS,
  requestPasswordReset,
  requireResetToken,
  resetPassword,
} from '../../db/access/password-resets.ts'
import type { AppDeps } from '../deps.ts'
import { baseUrl } from '../http/base-url.ts'
import { subnetOf } from '../http/client-ip.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { email, newPassword } from './account.ts'
import { HOUR, isWithin, limit } from './limit-attempts.ts'
import { mailKeyOf } from './mail-key.ts'

/** Mails to one address in an hour, whoever asks for them. */
const MAX_RESET_MAILS = 10

/** Minimum response time in milliseconds. Without it the response time would show whether the address is known. */
const LEAST_MS = 300

export const passwordResetRoutes: AppRoute[] = [
  appRoute({
    method: 'POST',
    path: '/password-resets',
    role: 'public',
    id: 'requestPasswordReset',
    tag: 'Session',
    summary: 'Request a password reset',
    description: `For a user who cannot sign in. The user gets a link by mail. If the service sends no mails, the admins of the organizations of the user see the request in the audit log, and can create a link. The response is the same for an unknown address. Requests are limited per IP address and email. Above ${MAX_RESET_MAILS} mails an hour to one address, it gets no further one as long as the link of the last mail works: use that.`,
    idempotent: false,
    body: z.strictObject({ email }).meta({ id: 'PasswordResetRequest' }),
    example: { email: 'grace@example.com' },
    response: {
      status: 200,
      schema: z
        .object({ object: z.literal('password_reset_request'), email: z.string() })
        .meta({ id: 'PasswordResetRequested' }),
    },
    async handler({ body, deps, clientIp }) {
      await limitResets(deps, clientIp)
      const address = body.email.toLowerCase()
      // Counts for one client only: a stranger must not use up what the user may ask for.
      await limitResetMails(deps, `email ${address} from ${subnetOf(clientIp)}`)
      const mailKey = mailKeyOf(deps)
      const rule = { subject: `reset mails to ${address}`, limit: MAX_RESET_MAILS, period: HOUR }
      const replaces = await isWithin(deps, rule)
      await Promise.all([
        requestPasswordReset(deps.db.system, body.email, { mailKey, replaces }),
        pause(LEAST_MS),
      ])
      if (mailKey) deps.db.notifier.send('agx_mails')
      return { object: 'password_reset_request', email: body.email }
    },
  }),
  appRoute({
    method: 'POST',
    path: '/password-resets/{token}',
    role: 'public',
    id: 'resetPassword',
    tag: 'Session',
    summary: 'Reset the password',
    description: 'Sets a new password and ends all sessions of the user. The link works once.',
    params: z.object({ token: z.string() }),
    idempotent: false,
    body: z.strictObject({ password: newPassword }).meta({ id: 'PasswordReset' }),
    example: { password: 'a new battery for the old horse' },
    response: {
      status: 200,
      schema: z
        .object({ object: z.literal('password_reset'), completed: z.literal(true) })
        .meta({ id: 'CompletedPasswordReset' }),
    },
    async handler({ params, body, deps, clientIp }) {
      await limitResets(deps, clientIp)
      await requireResetToken(deps.db.system, params.token)
      await resetPassword(deps.db.system, params.token, body.password)
      return { object: 'password_reset', completed: true }
    },
  }),
  appRoute({
    method: 'POST',
    path: '/members/{user_id}/password-reset',
    role: 'admin',
    id: 'createPasswordReset',
    tag: 'Members',
    summary: "Reset a member's password",
    description: `Mails a link to the member, or returns it if the service sends no mails. The link works once, within ${RESET_HOURS} hours, and replaces an earlier one. Only owners can create one for an owner. If the service sends no mails: 409 for a user who belongs to several organizations.`,
    params: z.object({ user_id: z.uuid() }),
    idempotent: false,
    response: {
      status: 201,
      schema: z
        .object({
          object: z.literal('password_reset_link'),
          mailed_to: z.string().nullable().meta({ description: 'The address; null if no mail is sent.' }),
          token: z.string().optional(),
          link: z.url().optional().meta({
            description:
              'The link for the member: a browser shows a form there, which sends `POST` with the new password. Share it with nobody else. Returned only here, and only if the service sends no mails.',
          }),
          expires_at: z.iso.datetime(),
        })
        .meta({ id: 'PasswordResetLink' }),
    },
    async handler({ params, deps, caller, tenant }) {
      const isInOthers = await isMemberElsewhere(deps.db.system, params.user_id, caller.organization.id)
      const mailKey = mailKeyOf(deps)
      if (mailKey) await limitResetMails(deps, `member ${params.user_id}`)
      const { email, token, expires_at } = await tenant((tx) =>
        createPasswordReset(tx, params.user_id, { isMemberElsewhere: isInOthers, mailKey }),
      )
      if (mailKey) return { object: 'password_reset_link', mailed_to: email, expires_at }
      const link = baseUrl(deps) + LINK_PATHS.password_reset(token)
      return { object: 'password_reset_link', mailed_to: null, token, link, expires_at }
    },
  }),
]

const limitResetMails = (deps: AppDeps, of: string) =>
  limit(deps, { subject: `reset ${of}`, limit: 3, period: HOUR })

const limitResets = (deps: AppDeps, clientIp: string) =>
  limit(deps, { subject: `reset address ${subnetOf(clientIp)}`, limit: 30, period: HOUR })
