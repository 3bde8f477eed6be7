import type { AddressInfo, Socket } from 'node:net'
import hoodiecrow from 'hoodiecrow-imap'

export const MAIL_PASSWORD = 'password-of-the-mailbox'

/** A mail, as the server stores it. */
export const mailOf = (n: number, { headers = '', text = `Text ${n}` } = {}) =>
  `From: Mailed ${n} <m${n}@example.com>\r\nSubject: Mail ${n}\r\nMessage-ID: <m${n}@mail.example>\r\n${headers}\r\n${text}\r\n`

/** An IMAP server with the folder INBOX of the user `ada`. */
export async function startImap(mails: string[] = []) {
  const imap = hoodiecrow({
    users: { ada: { password: MAIL_PASSWORD } },
    storage: { INBOX: { messages: mails.map((raw) => ({ raw })) } },
  })
  // Its own gives one mail of several, under either name, and parses each.
  for (const name of ['BODY', 'BODY.PEEK'])
    imap.fetchHandlers[name] = (_connection, { raw }, { partial: [start = 0, length = 0] }) => ({
      type: 'LITERAL',
      value: raw.slice(start, start + length),
    })
  const sockets = new Set<Socket>()
  imap.server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => imap.listen(0, '127.0.0.1', resolve))
  const inbox = imap.getMailbox('INBOX')
  return {
    port: (imap.server.address() as AddressInfo).port,
    connections: () => sockets.size,
    deliver: (raw: string, at = new Date()) => {
      imap.appendMessage(inbox, [], at, raw)
    },
    /** As after the mailbox was restored or moved: the same mails under other UIDs. */
    renumber: () => {
      inbox.uidvalidity += 1
      for (const one of inbox.messages) one.uid += 1_000
      inbox.uidnext += 1_000
    },
    flags: () => inbox.messages.flatMap(({ flags }) => flags),
    close: () => {
      for (const socket of sockets) socket.destroy()
      imap.server.close()
    },
  }
}
