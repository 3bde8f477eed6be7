import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createMailboxes } from '../../../activities/mail/mailbox.ts'
import { itemOfMail } from '../../../db/model/incoming/mail.ts'
import type { MailSource } from '../../../db/model/incoming/source.ts'
import { MAIL_PASSWORD, mailOf, startImap } from '../../support/imap.ts'

/** A server that writes `says`, and no more. */
async function startSilent(says = '') {
  const sockets: Socket[] = []
  const server: Server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    socket.write(says)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

describe('a mailbox', () => {
  let imap: Awaited<ReturnType<typeof startImap>>
  before(async () => {
    imap = await startImap(Array.from({ length: 45 }, (_, i) => mailOf(i + 1)))
  })
  after(() => imap.close())
  const source = (more: Partial<MailSource> = {}): MailSource => ({
    type: 'imap',
    host: '127.0.0.1',
    port: imap.port,
    tls: 'none',
    user: 'ada',
    password_secret: 'MAIL',
    folder: 'INBOX',
    ...more,
  })
  const open = (more: Partial<MailSource> = {}, password = MAIL_PASSWORD, times: object = {}) =>
    createMailboxes({ allow: ['127.0.0.0/8'] }, times)(source(more), password)

  it('is read in pages, the oldest mail first, and left as it is', async () => {
    const mailbox = await open()
    const pages = []
    for (let uid = 0; uid < mailbox.lastUid; ) {
      const { mails, end } = await mailbox.mailsAbove(uid)
      pages.push(mails.map((mail) => mail.uid))
      uid = end
    }
    mailbox.close()
    assert.deepEqual(
      pages.map(({ length }) => length),
      [20, 20, 5],
    )
    assert.deepEqual(
      pages.flat(),
      Array.from({ length: 45 }, (_, i) => i + 1),
    )
    assert.deepEqual(imap.flags(), [])
  })

  it('gives no more of a huge mail than its beginning', async () => {
    imap.deliver(mailOf(90, { text: 'x'.repeat(300_000) }))
    imap.deliver(
      mailOf(91, { headers: `To: ${'somebody@example.com,\r\n '.repeat(10_000)}last@example.com\r\n` }),
    )
    imap.deliver(mailOf(92))
    const mailbox = await open()
    const { mails, end } = await mailbox.mailsAbove(45)
    mailbox.close()
    assert.equal(end, 48)
    const payloads = (await Promise.all(mails.map(itemOfMail))).map(({ payload }) => payload)
    assert.deepEqual(
      payloads.map(({ email, message_truncated }) => [email, message_truncated]),
      [
        ['m90@example.com', true],
        ['m91@example.com', true],
        ['m92@example.com', false],
      ],
    )
    assert.equal((payloads[0]!.message as string).length, 50_000)
  })

  const reasons: [string, () => Promise<unknown>, RegExp][] = [
    ['a wrong password', () => open({}, 'wrong-password'), /refused the user or the password/],
    ['a folder that is gone', () => open({ folder: 'Leads' }), /does not open the folder "Leads": /],
    ['a server without TLS', () => open({ tls: 'implicit' }), /by TLS \(implicit\): ERR_SSL/],
    ['a server without STARTTLS', () => open({ tls: 'starttls' }), /by TLS \(starttls\)/],
    ['a closed port', () => open({ port: 9 }), /connection to the mailbox failed: ECONNREFUSED/],
    ['a private address', () => open({ host: '10.0.0.1' }), /10\.0\.0\.1 is a private/],
  ]
  for (const [name, opening, reason] of reasons)
    it(`says why it cannot be opened: ${name}`, async () => {
      const connected = imap.connections()
      await assert.rejects(opening(), { name: 'NodeError', message: reason })
      assert.ok(imap.connections() <= connected + 1)
    })

  it('refuses a name with a private address', async () => {
    const resolve = async () => [{ address: '10.0.0.1', family: 4 }]
    const opening = createMailboxes({ allow: ['127.0.0.0/8'], resolve })(source({ host: 'a.example' }), 'x')
    await assert.rejects(opening, { message: /a\.example is a private/ })
  })

  it('does not wait for ever: for a greeting, an answer, or the end of one', async () => {
    const times = { connectMs: 100, stepMs: 300 }
    for (const says of ['', '* OK ready\r\n', '* OK [CAPABILITY IMAP4rev1'] as const) {
      const silent = await startSilent(says)
      await assert.rejects(open({ port: silent.port }, MAIL_PASSWORD, times), {
        message: /did not answer within/,
      })
      silent.close()
    }
    const endless = await startSilent(`* OK ${'x'.repeat(2_000_000)}`)
    await assert.rejects(open({ port: endless.port }), { message: /more than is read/ })
    endless.close()
  })
})

describe('a mail', () => {
  const read = async (raw: string) =>
    (await itemOfMail({ uid: 7, size: raw.length, received_at: null, content: Buffer.from(raw) })).payload

  it('has its sender as the person, and its text', async () => {
    const payload = await read(
      [
        'From: =?UTF-8?Q?J=C3=B6rg?= <joerg@example.com>',
        'To: Support <support@agx.example>, Team: a@x.example;',
        'Reply-To: other@example.com',
        'Subject: =?UTF-8?B?SGVsbG8g4oKs?=',
        'Date: Tue, 24 Nov 2026 10:00:00 +0100',
        'Message-ID: <m1@example.com>',
        'Auto-Submitted: auto-replied',
        'Content-Type: multipart/mixed; boundary=b',
        '',
        '--b',
        'Content-Type: text/plain; charset=iso-8859-1',
        'Content-Transfer-Encoding: quoted-printable',
        '',
        'Gr=FC=DFe',
        '--b',
        'Content-Type: application/pdf; name="a.pdf"',
        'Content-Disposition: attachment; filename="a.pdf"',
        '',
        'AAAA',
        '--b--',
      ].join('\r\n'),
    )
    assert.deepEqual(payload, {
      email: 'joerg@example.com',
      name: 'Jörg',
      subject: 'Hello €',
      message: 'Grüße',
      message_truncated: false,
      message_id: '<m1@example.com>',
      in_reply_to: null,
      to: ['support@agx.example', 'a@x.example'],
      cc: [],
      answer_to: ['other@example.com'],
      date: '2026-11-24T09:00:00.000Z',
      received_at: null,
      attachments: [{ file: 'a.pdf', type: 'application/pdf' }],
      auto_submitted: 'auto-replied',
      list_id: null,
      size: 535,
      uid: 7,
    })
  })

  it('has the text of its HTML if it has no other, and none if it is no mail', async () => {
    const html = await read(
      'From: a@b.example\r\nContent-Type: text/html\r\n\r\n<style>p{}</style><p>One<p>Two',
    )
    assert.equal(html.message, 'One\n\nTwo')
    for (const raw of ['', '\0\xff', 'no header'])
      assert.deepEqual([(await read(raw)).email, (await read(raw)).subject], [null, null])
  })
})
