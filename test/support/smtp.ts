import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { noteSecrets } from './made-secrets.ts'
import { planted } from './planted.ts'

export interface ReceivedMail {
  from: string
  to: string[]
  /** The whole message: headers, an empty line, the body. */
  text: string
  /** The header's value, unfolded. */
  header(name: string): string | undefined
  /** Whether the connection was encrypted. */
  secure: boolean
}

/** The body of a mail, decoded. */
export const bodyOf = ({ text, header }: ReceivedMail) => {
  const body = text.slice(text.indexOf('\r\n\r\n') + 4)
  if (header('content-transfer-encoding') !== 'quoted-printable') return body
  return body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** How the server treats a mail; it accepts by default. */
export type SmtpBehaviour = 'accept' | 'hang up' | { at: 'rcpt' | 'data'; code: number; text: string }

export const SMTP_USER = 'mailer@example.com'
export const SMTP_PASSWORD = `p@ss:w0rd/ü-${planted('4711')}`

/** A mail server; with `auth` it takes mails only after a login. */
export async function startSmtp({ auth = false } = {}) {
  const received: ReceivedMail[] = []
  const next: SmtpBehaviour[] = []
  let logins = 0
  const refusal = (behaviour: { code: number; text: string }) =>
    Object.assign(new Error(behaviour.text), { responseCode: behaviour.code })
  const server = new SMTPServer({
    authOptional: !auth,
    // Its certificate is not trusted by any client.
    disabledCommands: auth ? [] : ['STARTTLS', 'AUTH'],
    // Names of clients are not looked up.
    disableReverseLookup: true,
    onAuth({ username, password }, _, callback) {
      logins++
      if (username === SMTP_USER && password === SMTP_PASSWORD) callback(null, { user: username })
      // Simulates a careless server, which echoes the credentials.
      else callback(Object.assign(new Error(`no: ${username} ${password}`), { responseCode: 535 }))
    },
    onRcptTo({ address }, _, callback) {
      const [behaviour = 'accept'] = next
      if (address.startsWith('unknown')) return callback(refusal({ code: 550, text: 'no such user' }))
      if (typeof behaviour !== 'object' || behaviour.at !== 'rcpt') return callback()
      next.shift()
      callback(refusal(behaviour))
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk) => chunks.push(chunk))
      stream.on('end', () => {
        const behaviour = next.shift() ?? 'accept'
        if (typeof behaviour === 'object') return callback(refusal(behaviour))
        const text = Buffer.concat(chunks).toString()
        noteSecrets(text)
        const [head = ''] = text.split('\r\n\r\n')
        const lines = head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text,
          header: (name) =>
            lines.find((line) => line.toLowerCase().startsWith(`${name}: `))?.slice(name.length + 2),
          secure: session.secure,
        })
        // The mail is taken, but the sender does not learn of it.
        if (behaviour === 'hang up') for (const socket of sockets) socket.destroy()
        else callback(null, 'taken')
      })
    },
  })
  const sockets = new Set<Socket>()
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('error', () => {})
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()))
  await listen(0)
  const { port } = server.server.address() as AddressInfo
  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    received,
    logins: () => logins,
    behave(...behaviours: SmtpBehaviour[]) {
      received.length = 0
      next.splice(0, next.length, ...behaviours)
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

export type Smtp = Awaited<ReturnType<typeof startSmtp>>
