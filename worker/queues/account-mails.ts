import { mailAccount } from '../../activities/mail/account.ts'
import {
  type ClaimedAccountMail,
  claimAccountMails,
  linkWorks,
  openToken,
  recordAccountMail,
} from '../../db/access/account-mails.ts'
import { LINK_PATHS } from '../../db/access/link-tokens.ts'
import type { MailOutcome } from '../../db/mails/queue.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { SYSTEM } from '../../db/postgres/tenancy.ts'
import type { SecretsKey } from '../../db/seal.ts'
import type { Queue } from '../relay.ts'
import { MAIL_TIMEOUT_MS, type MailDeps, unset } from './approval-mails.ts'

/** Mails of invitations, password resets and sign-ups. It starts no workflow, as the queue of approval mails. */
export function accountMailsQueue({
  db,
  mailer,
  publicUrl,
  secretsKey,
}: Pick<MailDeps, 'mailer' | 'publicUrl'> & {
  db: Database
  secretsKey: SecretsKey
}): Queue<ClaimedAccountMail> {
  const attempt = async (mail: ClaimedAccountMail): Promise<MailOutcome> => {
    const token = tokenOf(secretsKey, mail)
    if (typeof token === 'object') return token
    if (mail.kind !== 'sign_up_known' && !(await linkWorks(db.system, mail.kind, token)))
      return { status: 'needless' }
    if (!mailer) return unset('SMTP_URL')
    if (!publicUrl) return unset('PUBLIC_URL')
    const service = publicUrl.replace(/\/$/, '')
    const link = mail.kind === 'sign_up_known' ? '' : service + LINK_PATHS[mail.kind](token)
    return mailAccount(mailer, mail, { link, service }, AbortSignal.timeout(MAIL_TIMEOUT_MS))
  }
  return {
    name: 'account mails',
    channel: 'agx_mails',
    claim: claimAccountMails,
    async start(_client, mail) {
      const outcome = await attempt(mail)
      await db.tenant(mail.organization_id, SYSTEM, (tx) => recordAccountMail(tx, mail, outcome))
    },
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
