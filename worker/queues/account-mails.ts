import { mailAccount } from '../../activities/mail/account.ts'
import { mailReminder } from '../../activities/mail/reminder.ts'
import {
  accountMails,
  type ClaimedAccountMail,
  isLinkKind,
  linkWorks,
  openToken,
  recordAccountMail,
} from '../../db/access/account-mails.ts'
import { LINK_PATHS } from '../../db/access/link-tokens.ts'
import { findSuppressed } from '../../db/mails/suppressions.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import type { MailOutcome } from '../../db/queue/mails.ts'
import { findMailedTask } from '../../db/records/reminder-mails.ts'
import type { Queue } from '../relay.ts'
import { type MailDeps, mailsQueue, NOT_WANTED, type Send } from './mails.ts'

/** Mails of invitations, password resets and sign-ups, those to owners, and reminders of tasks. */
export const accountMailsQueue = ({
  secretsKey,
  ...deps
}: MailDeps & { secretsKey: SecretsKey }): Queue<ClaimedAccountMail> =>
  mailsQueue<ClaimedAccountMail>(deps, {
    name: 'account mails',
    table: 'account_mails',
    queue: accountMails,
    async prepare(mail) {
      const { kind } = mail
      if (kind === 'task_reminder') return prepareReminder(deps, mail)
      const token = tokenOf(secretsKey, mail)
      if (typeof token === 'object') return token
      if (isLinkKind(kind) && !(await linkWorks(deps.db.system, kind, token))) return { status: 'needless' }
      return (mailer, publicUrl, signal) => {
        const service = serviceAt(publicUrl)
        const link = isLinkKind(kind) ? service + LINK_PATHS[kind](token) : ''
        return mailAccount(mailer, { ...mail, kind }, { link, service }, signal)
      }
    },
    record: recordAccountMail,
    // The others are asked for by the person at the address, or go to the owners.
    isCounted: ({ kind }) => kind === 'invitation' || kind === 'task_reminder',
  })

const serviceAt = (publicUrl: string) => publicUrl.replace(/\/$/, '')

async function prepareReminder({ db }: MailDeps, mail: ClaimedAccountMail): Promise<Send | MailOutcome> {
  const { organization_id, id, details } = mail
  const { reminder } = details
  const task = reminder && (await db.tenant(organization_id, SYSTEM, (tx) => findMailedTask(tx, reminder)))
  if (!task) return { status: 'needless' }
  const { address } = task
  if ((await findSuppressed(db.system, organization_id, [address])).size > 0) return NOT_WANTED
  return (mailer, publicUrl, signal) => {
    const about = { task, task_id: reminder.task_id, service: serviceAt(publicUrl) }
    return mailReminder(mailer, { id, address }, about, signal)
  }
}

/** The token, empty for a mail without one. A key that is missing may be configured later. */
function tokenOf(key: SecretsKey, mail: ClaimedAccountMail): string | MailOutcome {
  try {
    return openToken(key, mail) ?? ''
  } catch {
    const problem = 'The SECRETS_KEY that sealed the link is not configured.'
    return { status: 'failed', problem, retryable: true }
  }
}
