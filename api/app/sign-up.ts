import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import {
  confirmSignUp,
  requestSignUp,
  requireOpenSignUp,
  SIGN_UP_HOURS,
  signUpAtOnce,
  signUpEmail,
} from '../../db/access/sign-ups.ts'
import { mailsLinks } from '../../db/process/config.ts'
import { subnetOf } from '../http/client-ip.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { email, newPassword } from './account.ts'
import { HOUR, limit, limitAttempts } from './limit-attempts.ts'
import { answerSession, clientOf, replacedSession, sessionSchema } from './session.ts'

/** Minimum response time in milliseconds. Without it the response time would show whether the address is known. */
const LEAST_MS = 500

const name = z.string().trim().min(1).max(200)

export const signUpRoutes: AppRoute[] = [
  appRoute({
    method: 'POST',
    path: '/signup',
    role: 'public',
    id: 'signUp',
    tag: 'Session',
    summary: 'Sign up',
    description: `Creates an organization with you as its owner. \`confirmation: mail\`: nothing is created until the link in the mail is used, within ${SIGN_UP_HOURS} hours, with the same password. \`confirmation: none\`: sign in with \`POST /app/session\`. The response is the same for an address with an account: the password must then be that of the account, else nothing is created, and the mail says so. 404 if the operator has closed sign-up (\`SIGN_UP\`). Limited per IP address, per email, and per both together.`,
    idempotent: false,
    body: z
      .strictObject({ organization_name: name, name, email, password: newPassword })
      .meta({ id: 'SignUpCreate' }),
    example: {
      organization_name: 'Acme',
      name: 'Ada Lovelace',
      email: 'ada@acme.example',
      password: 'correct horse battery staple',
    },
    response: {
      status: 201,
      schema: z
        .object({
          object: z.literal('sign_up'),
          email: z.string(),
          confirmation: z.enum(['mail', 'none']),
        })
        .meta({ id: 'SignUp' }),
    },
    async handler({ body, deps, clientIp }) {
      const { config, db, secretsKey } = deps
      await requireOpenSignUp(db.system, config.SIGN_UP)
      await limit(deps, { subject: `sign-up address ${subnetOf(clientIp)}`, limit: 20, period: HOUR })
      const subject = `sign-up email ${body.email.toLowerCase()}`
      // Counts for one client only: a stranger must not use up what the owner of the address may ask for.
      await limit(deps, { subject: `${subject} from ${subnetOf(clientIp)}`, limit: 3, period: HOUR })
      // Over all client addresses it is higher, so that the mailbox is not flooded, and only a botnet uses it up.
      await limit(deps, { subject, limit: 30, period: HOUR })
      const mailed = mailsLinks(config)
      await Promise.all([
        mailed ? requestSignUp(db.system, secretsKey, body) : signUpAtOnce(db.system, config.SIGN_UP, body),
        pause(LEAST_MS),
      ])
      if (mailed) db.notifier.send('agx_mails')
      return { object: 'sign_up', email: body.email, confirmation: mailed ? 'mail' : 'none' }
    },
  }),
  appRoute({
    method: 'POST',
    path: '/signup/{token}',
    role: 'public',
    id: 'confirmSignUp',
    tag: 'Session',
    summary: 'Confirm a sign-up',
    description:
      'Creates the organization, and signs in. `password` is the password of the sign-up, or that of the account if the address has one. The link works once.',
    params: z.object({ token: z.string() }),
    idempotent: false,
    body: z
      .strictObject({ password: z.string().min(1).max(1_000).meta({ writeOnly: true }) })
      .meta({ id: 'SignUpConfirmation' }),
    example: { password: 'correct horse battery staple' },
    response: { status: 201, schema: sessionSchema },
    async handler(request) {
      const { params, body, deps } = request
      const { system } = deps.db
      const rule = deps.config.SIGN_UP
      await requireOpenSignUp(system, rule)
      await limitAttempts(deps, request.clientIp, await signUpEmail(system, params.token))
      const confirmed = { rule, password: body.password }
      return answerSession(
        request,
        await confirmSignUp(system, params.token, confirmed, clientOf(request), replacedSession(request)),
      )
    },
  }),
]
