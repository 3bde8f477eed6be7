import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { createMailer, type OpenedMail } from '../../../activities/mail/mailer.ts'
import type { NodeError } from '../../../workflows/language/node-error.ts'
import { parseMailbox } from '../../../workflows/shared/mailbox.ts'
import { SMTP_PASSWORD, SMTP_USER, type Smtp, startSmtp } from '../../support/smtp.ts'

const MAIL_FROM = 'Example CRM <crm@example.com>'
const NEVER = new AbortController().signal

const mailTo = (...addresses: string[]): OpenedMail => ({
  key: 'run:node',
  to: addresses.map((address) => parseMailbox(address)!),
  cc: [],
  bcc: [],
  subject: 'Hello',
  text: 'Hello.',
})

describe('the mailer', () => {
  let open: Smtp
  let closed: Smtp
  before(async () => {
    open = await startSmtp()
    closed = await startSmtp({ auth: true })
  })
  beforeEach(() => {
    open.behave()
    closed.behave()
  })
  after(async () => {
    await open.close()
    await closed.close()
  })

  const mailer = (SMTP_URL = open.url) => createMailer({ SMTP_URL, MAIL_FROM })!
  const send = (message: OpenedMail, url?: string) => mailer(url).send(message, NEVER)
  const login = `${encodeURIComponent(SMTP_USER)}:${encodeURIComponent(SMTP_PASSWORD)}`

  it('sends both alternatives to all recipients, and does not show the hidden ones', async () => {
    const receipt = await send({
      ...mailTo('Ada Lovelace <ada@example.com>'),
      cc: [{ name: 'Zoë "Z", ok', address: 'zoe@example.com' }],
      bcc: [{ name: '', address: 'boss@example.com' }],
      replyTo: { name: '', address: 'desk@example.com' },
      subject: 'Grüße, Ada',
      html: '<p>Hello.</p>',
    })
    const [mail] = open.received
    deepEqual(receipt.accepted, ['ada@example.com', 'zoe@example.com', 'boss@example.com'])
    deepEqual([mail!.from, mail!.to], ['crm@example.com', receipt.accepted])
    equal(mail!.header('from'), 'Example CRM <crm@example.com>')
    equal(mail!.header('to'), 'Ada Lovelace <ada@example.com>')
    match(mail!.header('cc')!, /<zoe@example\.com>$/)
    equal(mail!.header('reply-to'), 'desk@example.com')
    equal(mail!.header('subject'), '=?UTF-8?Q?Gr=C3=BC=C3=9Fe=2C_Ada?=')
    equal(mail!.header('message-id'), receipt.message_id)
    match(mail!.header('content-type')!, /^multipart\/alternative/)
    equal(mail!.header('auto-submitted'), 'auto-generated')
    ok(!mail!.text.includes('boss@'))
  })

  it('gives each attempt the same Message-ID, and another mail another one', async () => {
    const first = await send(mailTo('ada@example.com'))
    const again = await send(mailTo('ada@example.com'))
    const other = await send({ ...mailTo('ada@example.com'), key: 'run:other' })
    equal(first.message_id, again.message_id)
    ok(first.message_id !== other.message_id)
    match(first.message_id, /^<[0-9a-f]{32}@example\.com>$/)
  })

  it('lets no text become a header or a recipient', async () => {
    const attack = 'x\r\nBcc: eve@example.com\r\n\r\nbody\u2028y'
    const message = {
      ...mailTo('ada@example.com'),
      subject: attack,
      fromName: `${attack}, <eve@example.com>`,
    }
    await send({ ...message, to: [{ name: attack, address: 'ada@example.com' }] })
    const [mail] = open.received
    deepEqual(mail!.to, ['ada@example.com'])
    equal(mail!.header('bcc'), undefined)
    equal(mail!.header('subject'), 'x Bcc: eve@example.com body y')
    for (const text of [
      'ada@example.com\r\nBcc: eve@example.com',
      'A\nB <ada@example.com>',
      'a@x.com, b@x.com',
    ])
      equal(parseMailbox(text), undefined, text)
  })

  it('tells which of the recipients were refused', async () => {
    const { accepted, rejected } = await send(mailTo('ada@example.com', 'unknown@example.com'))
    deepEqual(accepted, ['ada@example.com'])
    deepEqual(rejected, [{ address: 'unknown@example.com', reply: '550 no such user' }])
  })

  const refusals: [string, Parameters<Smtp['behave']>[0], number, boolean][] = [
    ['a full mailbox', { at: 'rcpt', code: 452, text: 'mailbox full' }, 452, true],
    ['a recipient that does not exist', { at: 'rcpt', code: 550, text: 'mailbox full' }, 550, false],
    ['greylisting', { at: 'data', code: 451, text: 'mailbox full' }, 451, true],
    ['a message that is spam', { at: 'data', code: 554, text: 'mailbox full' }, 554, false],
  ]
  for (const [what, behaviour, code, retryable] of refusals)
    it(`${retryable ? 'may try again' : 'gives up'} after ${what} (${code})`, async () => {
      open.behave(behaviour)
      await rejects(send(mailTo('ada@example.com')), (error: NodeError) => {
        deepEqual(
          [error.code, error.retryable, error.details],
          ['mail_refused', retryable, { reply_code: code }],
        )
        match(error.message, new RegExp(`${code} mailbox full`))
        return true
      })
    })

  it('may try again if there is no server', async () => {
    const gone = await startSmtp()
    await gone.close()
    await rejects(send(mailTo('ada@example.com'), gone.url), (error: NodeError) => {
      deepEqual([error.code, error.retryable], ['mail_connection_failed', true])
      match(error.message, /failed: ECONNREFUSED\.$/)
      return true
    })
  })

  it('logs in over TLS only', async () => {
    const trusting = `smtp://${login}@127.0.0.1:${closed.port}?tls.rejectUnauthorized=false`
    deepEqual((await send(mailTo('ada@example.com'), trusting)).accepted, ['ada@example.com'])
    equal(closed.received[0]!.secure, true)
    // The server has a self-signed certificate.
    const strict = `smtp://${login}@127.0.0.1:${closed.port}`
    await rejects(send(mailTo('ada@example.com'), strict), { code: 'mail_connection_failed' })
    equal(closed.logins(), 1)
  })

  it('keeps credentials out of errors, even if the server repeats them', async () => {
    const wrong = `smtp://${login}x@127.0.0.1:${closed.port}?tls.rejectUnauthorized=false`
    await rejects(send(mailTo('ada@example.com'), wrong), (error: NodeError) => {
      deepEqual([error.code, error.retryable], ['mail_login_failed', false])
      equal(error.message, 'The mail server refused the login of the service (535).')
      ok(!JSON.stringify(error.details).includes('w0rd'))
      return true
    })
    const trusting = `smtp://${login}@127.0.0.1:${closed.port}?tls.rejectUnauthorized=false`
    closed.behave({ at: 'data', code: 550, text: `no, ${SMTP_USER} with ${SMTP_PASSWORD}` })
    await rejects(send(mailTo('ada@example.com'), trusting), (error: NodeError) => {
      match(error.message, /550 no, \[masked\] with \[masked\]/)
      return true
    })
  })

  describe('with a server that is silent', () => {
    let silent: Server
    let hungUp: Promise<void>
    before(async () => {
      hungUp = new Promise((resolve) => {
        silent = createServer((socket) => socket.on('close', () => resolve()).on('error', () => {}))
      })
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    })
    after(() => silent.close())

    it('hangs up when the attempt ends', async () => {
      const { port } = silent.address() as { port: number }
      const abort = new AbortController()
      const sending = mailer(`smtp://127.0.0.1:${port}`).send(mailTo('ada@example.com'), abort.signal)
      setTimeout(() => abort.abort(new Error('the attempt is over')), 100)
      await rejects(sending, /the attempt is over/)
      await hungUp
    })
  })

  it('is absent without its settings', () => {
    equal(createMailer({}), undefined)
    equal(createMailer({ MAIL_FROM }), undefined)
  })
})
