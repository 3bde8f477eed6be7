import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ImapFlow, ImapFlowError, ImapTransport } from 'imapflow'
import type { RawMail } from '../../db/model/incoming/mail.ts'
import type { MailSource } from '../../db/model/incoming/source.ts'
import {
  createGuard,
  type EgressOptions,
  EgressRefused,
  type Guard,
} from '../../db/process/guarded-connector.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { Redactor } from '../../workflows/shared/redactor.ts'

/** An open folder of a mailbox, which it only reads: no mail is marked as seen. */
export interface OpenMailbox {
  /** The server's name for this numbering of the mails: their UIDs mean nothing under another one. */
  validity: string
  /** The UID of the newest mail, or above it. */
  lastUid: number
  /**
   * The oldest mails above a UID, in order; none: there are no more. A mail received before `since` is left out.
   * `end` is the UID up to which they are all.
   */
  mailsAbove(uid: number, since?: Date): Promise<{ mails: RawMail[]; end: number }>
  close(): void
}

export type OpenMailboxes = (source: MailSource, password: string) => Promise<OpenMailbox>

/** Mails of a page, and the bytes that are read of each. */
const PAGE = 20
const MAIL_BYTES = 128 * 1024
/** The time of a connection, of its greeting; of a step: connecting, logging in and opening, or reading a page. */
const TIMES = { connectMs: 10_000, stepMs: 20_000 }
/** UIDs that are asked for first; more, where there are no mails among them. */
const RANGE = 1_000

/** What a server can make the worker hold. */
const LIMITS = {
  maxLineLength: 1024 * 1024,
  maxLiteralSize: 1024 * 1024,
  maxResponseSize: 3 * 1024 * 1024,
  maxResponseTokens: 50_000,
}

/** The code of a mailbox that refuses the user or the password. */
export const LOGIN_FAILED = 'mailbox_login_failed'

/** Opens mailboxes by IMAP. They throw NodeError, with a reason for the owner of the source. */
export function createMailboxes(options: EgressOptions, times: Partial<typeof TIMES> = {}): OpenMailboxes {
  const { connectMs, stepMs } = { ...TIMES, ...times }
  const guard = createGuard(options)
  return async (source, password) => {
    const refusal = guard.refusal(source.host)
    if (refusal) throw new NodeError('egress_refused', refusal.message)
    const explain = explainer(source, new Redactor([password]), connectMs)
    // With the first mailbox: its tables of characters are a part of a process's start that few need.
    const { ImapFlow } = await import('imapflow')
    const client = new ImapFlow({
      host: source.host,
      port: source.port,
      secure: source.tls === 'implicit',
      doSTARTTLS: source.tls === 'starttls',
      auth: { user: source.user, pass: password },
      transport: transportBy(guard),
      logger: false,
      disableAutoIdle: true,
      connectionTimeout: connectMs,
      greetingTimeout: connectMs,
      socketTimeout: 15_000,
      ...LIMITS,
    })
    // What a command does not throw; without a listener it would end the process.
    client.on('error', () => {})
    const step = bounded(client, explain, stepMs)
    const { uidValidity, uidNext } = await step(async () => {
      await client.connect()
      return client.mailboxOpen(source.folder, { readOnly: true }).catch((error: ImapFlowError) => {
        throw error.responseStatus ? Object.assign(error, { mailboxMissing: true }) : error
      })
    })
    // Before IMAP4rev2, a server may keep it to itself.
    if (!Number.isInteger(uidNext)) {
      client.close()
      throw new NodeError('mailbox_refused', 'the mailbox does not tell its next UID (UIDNEXT)')
    }
    return {
      validity: String(uidValidity),
      lastUid: uidNext - 1,
      mailsAbove: (uid, since) => mailsAbove(client, step, { uid, last: uidNext - 1, since }),
      close: () => client.close(),
    }
  }
}

/** Runs a step, and closes the connection if it takes too long or fails. */
function bounded(client: ImapFlow, explain: (error: ImapFlowError) => NodeError, ms: number) {
  return async <T>(work: () => Promise<T>): Promise<T> => {
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
      client.close()
    }, ms)
    try {
      return await work()
    } catch (error) {
      client.close()
      throw isOver ? timedOut(ms) : explain(error as ImapFlowError)
    } finally {
      clearTimeout(timer)
    }
  }
}

type Step = ReturnType<typeof bounded>

async function mailsAbove(
  client: ImapFlow,
  step: Step,
  { uid, last, since }: { uid: number; last: number; since: Date | undefined },
): Promise<{ mails: RawMail[]; end: number }> {
  const found = await step(() => uidsAbove(client, { uid, last, since }))
  const received = new Map<number, RawMail>()
  const uids = found.slice(0, PAGE)
  if (uids.length === 0) return { mails: [], end: last }
  const query = { uid: true, size: true, internalDate: true, source: { start: 0, maxLength: MAIL_BYTES } }
  const failure = await step(async () => {
    for await (const { uid, size = 0, internalDate, source } of client.fetch(uids.join(','), query, {
      uid: true,
    })) {
      if (!uids.includes(uid)) continue
      const content = (source ?? Buffer.alloc(0)).subarray(0, MAIL_BYTES)
      received.set(uid, { uid, size, received_at: timeOf(internalDate)?.toISOString() ?? null, content })
    }
  }).then(
    () => undefined,
    (error: unknown) => error,
  )
  // What came before a failure is taken, up to the first that did not: a slow mailbox is read mail by mail.
  const missing = uids.findIndex((one) => !received.has(one))
  const whole = failure && missing >= 0 ? uids.slice(0, missing) : uids
  if (failure && whole.length === 0) throw failure
  const mails = whole.flatMap((one) => received.get(one) ?? [])
  const isNew = ({ received_at }: RawMail) => !since || !received_at || new Date(received_at) >= since
  return { mails: mails.filter(isNew), end: whole.at(-1)! }
}

async function uidsAbove(
  client: ImapFlow,
  { uid, last, since }: { uid: number; last: number; since: Date | undefined },
): Promise<number[]> {
  for (let from = uid + 1, size = RANGE; from <= last; from += size, size *= 4) {
    const to = Math.min(from + size - 1, last)
    // SINCE has days only, in the server's time zone.
    const day = since && { since: new Date(since.getTime() - 86_400_000) }
    const found = await client.search({ uid: `${from}:${to}`, ...day }, { uid: true })
    if (!Array.isArray(found)) throw Object.assign(new Error('refused'), { code: 'SEARCH' })
    const inRange = found.filter((one) => one >= from && one <= to)
    if (inRange.length > 0) return inRange.sort((a, b) => a - b)
  }
  return []
}

const timeOf = (date: Date | string | undefined): Date | undefined => {
  const time = new Date(date ?? Number.NaN)
  return Number.isNaN(time.getTime()) ? undefined : time
}

/** Connects sockets to addresses that the guard allows. */
const transportBy = ({ lookup }: Guard): ImapTransport => ({
  connect: ({ host, port, servername, secure }, onConnect) =>
    secure
      ? connectTls({ host, port, servername, lookup }, onConnect)
      : connectTcp({ host, port, lookup }, onConnect),
  upgrade: (socket, { servername }, onSecure) => connectTls({ socket, servername }, onSecure),
})

const timedOut = (ms: number) =>
  new NodeError('timeout', `the mailbox did not answer within ${ms / 1000} s`, { retryable: true })

const TIMEOUTS = ['CONNECT_TIMEOUT', 'GREETING_TIMEOUT', 'GREEETING_TIMEOUT', 'ETIMEOUT', 'UPGRADE_TIMEOUT']
const TOO_LARGE = ['LineTooLarge', 'LiteralTooLarge', 'ResponseTooLarge', 'TooManyTokens']

function explainer({ folder, tls }: MailSource, redactor: Redactor, connectMs: number) {
  return (error: ImapFlowError): NodeError => {
    if (error instanceof EgressRefused) return new NodeError('egress_refused', error.message)
    const { code = '', response, responseText } = error
    const said = redactor.text(String(responseText ?? response ?? '').slice(0, 200))
    const saying = said === '' ? '' : `: ${said}`
    if (error.authenticationFailed)
      return new NodeError(LOGIN_FAILED, `the mailbox refused the user or the password${saying}`)
    if (error.mailboxMissing)
      return new NodeError(
        'mailbox_folder_missing',
        `the mailbox does not open the folder ${JSON.stringify(folder)}${saying}`,
      )
    if (TIMEOUTS.includes(code)) return timedOut(connectMs)
    if (TOO_LARGE.includes(code))
      return new NodeError('response_too_large', 'the mailbox answered more than is read of an answer')
    if (error.tlsFailed || /CERT|SSL|TLS/.test(code))
      return new NodeError(
        'mailbox_tls_failed',
        `the mailbox cannot be reached by TLS (${tls}): ${code || error.message}`,
      )
    if (error.responseStatus)
      return new NodeError('mailbox_refused', `the mailbox refused a command${saying}`, { retryable: true })
    return new NodeError(
      'connection_failed',
      `the connection to the mailbox failed: ${code || error.message}`,
      {
        retryable: true,
      },
    )
  }
}
