import type { AccountMailDetails, ClaimedAccountMail } from '../../db/access/account-mails.ts'
import type { MailOutcome } from '../../db/queue/mails.ts'
import { attemptMail } from './attempt.ts'
import type { Mailer } from './mailer.ts'
import { plainName } from './plain-name.ts'

/** Sends a mail to a person of an account. `link` is empty for a mail without one. */
export function mailAccount(
  mailer: Mailer,
  { id, kind, address, details }: ClaimedAccountMail & { kind: TextKind },
  { link, service }: { link: string; service: string },
  signal: AbortSignal,
): Promise<MailOutcome> {
  const {
    subject,
    lines: [first, ...further],
    cause = 'because of a request with your address',
  } = TEXTS[kind](details, service)
  const until = details.expires_at?.slice(0, 16).replace('T', ' ')
  const text = [
    first,
    ...(link ? [link, `The link works once, until ${until} UTC. Give it to nobody else.`] : []),
    ...further,
    `${service} sent this mail ${cause}.`,
  ].join('\n\n')
  return attemptMail(mailer, { key: `account mail ${id}`, address, subject, text }, signal)
}

/** Kinds whose text is in the row of the mail. */
type TextKind = Exclude<ClaimedAccountMail['kind'], 'task_reminder'>

type Text = (
  details: AccountMailDetails,
  service: string,
) => { subject: string; lines: string[] /** Why it was sent. */; cause?: string }

/** Anybody can trigger the mails of sign-ups and resets for any address: they quote nothing from the request. */
const TEXTS: Record<TextKind, Text> = {
  invitation: ({ organization_name = '', invited_by }) => ({
    subject: `Invitation to ${plainName(organization_name)}`,
    lines: [`${plainName(invited_by ?? 'An admin')} invites you to join “${plainName(organization_name)}”:`],
  }),
  password_reset: () => ({
    subject: 'Reset your password',
    lines: ['Choose a new password here:', 'If you did not ask for it, ignore this mail.'],
  }),
  sign_up: () => ({
    subject: 'Confirm your sign-up',
    lines: [
      'Confirm the sign-up with the password that you gave for it:',
      'If you did not sign up, ignore this mail.',
    ],
  }),
  sign_up_known: (_, service) => ({
    subject: 'You already have an account',
    lines: [
      `Somebody signed up at ${service} with your address and another password than that of your account. Nothing was changed.`,
      'If it was you: sign in, or sign up again with the password of your account to make another organization. If you forgot it, ask for a password reset.',
    ],
  }),
  webhook_disabled: ({ organization_name = '', webhook_name = '', reason }) => ({
    subject: `The webhook ${plainName(webhook_name)} was deactivated`,
    lines: [
      `The service deactivated the outgoing webhook “${plainName(webhook_name)}” of “${plainName(organization_name)}”: ${reason}.`,
      'Its deliveries are held, and are sent when you activate it again. Until then, new events are held, too.',
    ],
    cause: `because you are an owner of “${plainName(organization_name)}”`,
  }),
  source_failing: ({ organization_name = '', webhook_name = '', reason = '' }) => ({
    subject: `The source of ${plainName(webhook_name)} cannot be read`,
    lines: [
      `The polls of the source of the incoming webhook “${plainName(webhook_name)}” of “${plainName(organization_name)}” keep failing: ${plainName(reason)}.`,
      'They are repeated, and nothing is lost that the source still lists. Set the source or its password again to repeat them at once.',
    ],
    cause: `because you are an owner of “${plainName(organization_name)}”`,
  }),
  runs_skipped: ({ organization_name = '', workflow_name = '', reason = '' }) => ({
    subject: `Runs of ${plainName(workflow_name)} were skipped`,
    lines: [
      `Events start more runs of “${plainName(organization_name)}” than its plan allows. The first that was skipped is of the workflow “${plainName(workflow_name)}”. ${plainName(reason)}`,
      'The list of skipped runs and the problems of the triggers show more. To stop the workflow, deactivate it with cancel_queued, which cancels its queued runs.',
    ],
    cause: `because you are an owner of “${plainName(organization_name)}”`,
  }),
}
