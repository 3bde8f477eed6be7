import { mailAccount } from '../../activities/mail/account.ts'
import {
  accountMails,
  type ClaimedAccountMail,
  isLinkKind,
  linkWorks,
  openToken,
  recordAccountMail,
} from '../../db/access/account-mails.ts'
import { LINK_PATHS } from '../../db/access/link-tokens.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import type { MailOutcome } from '../../db/queue/mails.ts'
import type { Queue } from '../relay.ts'
import { type MailDeps, mailsQueue } from './mails.ts'

/** Mails of invitations, password resets and sign-ups, and those to owners. */
export const accountMailsQueue = ({
  secretsKey,
  ...deps
}: MailDeps & { secretsKey: SecretsKey }): Queue<ClaimedAccountMail> =>
  mailsQueue<ClaimedAccountMail>(deps, {
    name: 'account mails',
    table: 'account_mails',
    queue: accountMails,
    async prepare(mail) {
      const token = tokenOf(secretsKey, mail)
      if (typeof token === 'object') return token
      if (isLinkKind(mail.kind) && !(await linkWorks(deps.db.system, mail.kind, token)))
        return { status: 'needless' }
      return (mailer, publicUrl, signal) => {
        const service = publicUrl.replace(/\/$/, '')
        const link = isLinkKind(mail.kind) ? service + LINK_PATHS[mail.kind](token) : ''
        return mailAccount(mailer, mail, { link, service }, signal)
      }
    },
    record: recordAccountMail,
    // The others are asked for by the person at the address, or go to the owners.
    isCounted: ({ kind }) => kind === 'invitation',
  })

/** The token, empty for a mail without one. A key that is missing may be configured later. */
function tokenOf(key: SecretsKey, mail: ClaimedAccountMail): string | MailOutcome {
  try {
    return openToken(key, mail) ?? ''
  } catch {
    const problem = 'The SECRETS_KEY that sealed the link is not configured.'
    return { status: 'failed', problem, retryable: true }
  }
}
