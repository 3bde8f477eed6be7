import { createMailer } from '../../activities/mail/mailer.ts'
import { startApi } from './api.ts'
import { createTestDatabase } from './database.ts'
import { type Smtp, startSmtp } from './smtp.ts'
import type { ApiSuite } from './with-api.ts'
import { startWorker, type TestWorker } from './worker.ts'

export interface MailSuite extends ApiSuite {
  smtp: Smtp
  worker: TestWorker
  /** Starts the worker again, after it was stopped; `bare`: without the mail server. */
  restart(bare?: 'bare'): Promise<void>
}

/**
 * For a `describe`: a mail server that accepts all at the beginning of each test, an API, and a worker that sends mails.
 * `env`: that of the API, which may have the settings of the mail server too. `effects`: those of the worker.
 */
export function withMails(
  env: (mail: Record<string, string>) => Record<string, string> = () => ({}),
  effects: () => Parameters<typeof startWorker>[1] = () => ({}),
): MailSuite {
  const suite = {} as MailSuite
  const mail = () => ({ SMTP_URL: suite.smtp.url, MAIL_FROM: 'crm@example.com' })
  suite.restart = async (bare) => {
    const mailer = bare ? {} : { mailer: createMailer(mail()) }
    suite.worker = await startWorker(
      suite.db,
      { ...mailer, secretsKey: suite.api.secretsKey, ...effects() },
      suite.worker?.taskQueue,
    )
  }
  before(async () => {
    suite.db = await createTestDatabase()
    suite.smtp = await startSmtp()
    suite.api = await startApi(suite.db, env(mail()))
    await suite.restart()
  })
  beforeEach(() => suite.smtp.behave())
  after(async () => {
    await suite.worker?.stop()
    await suite.api?.close()
    await suite.smtp?.close()
    await suite.db?.drop()
  })
  return suite
}
