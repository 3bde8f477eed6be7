import { ports } from '../../workflows/effects/index.ts'
import type { Mail } from '../../workflows/effects/mail.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { EffectHost } from './define.ts'

/** Sends with the cancellation of the attempt. Throws NodeError `mail_not_configured` if there is no SMTP server. */
export const mailOf = (mailer: Mailer | undefined, { signal, reach }: EffectHost): Mail => ({
  async send(message) {
    if (mailer) {
      reach('mail')
      return mailer.send(message, signal)
    }
    const settings = ports.mail.settings!.join(' and ')
    throw new NodeError(
      'mail_not_configured',
      `The service cannot send mails: its operator has not set ${settings}.`,
    )
  },
})
