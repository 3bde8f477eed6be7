import { Readable } from 'node:stream'
import type { Database } from '../../db/postgres/connect.ts'
import { getFile } from '../../db/stored-files/files.ts'
import type { FileStore } from '../../db/stored-files/store.ts'
import { ports } from '../../workflows/effects/index.ts'
import type { Attachment, Mail } from '../../workflows/effects/mail.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { FILES } from '../../workflows/shared/limits.ts'
import type { AttachedFile, Mailer } from '../mail/mailer.ts'
import type { EffectHost } from './define.ts'
import { transactionsOf } from './transactions.ts'

/** Sends with the cancellation of the attempt. Throws NodeError `mail_not_configured` if there is no SMTP server. */
export function mailOf(
  mailer: Mailer | undefined,
  { db, files }: { db: Database | undefined; files: FileStore | undefined },
  host: EffectHost,
): Mail {
  /** The attached files, whose contents are read while the mail is sent. */
  const open = async (attachments: Attachment[]): Promise<AttachedFile[]> => {
    if (attachments.length === 0) return []
    if (!files) throw new Error('this process reads no files')
    const transact = transactionsOf(db, host)
    const rows = await Promise.all(attachments.map(({ file_id }) => transact((tx) => getFile(tx, file_id))))
    const bytes = rows.reduce((sum, { size }) => sum + size, 0)
    if (bytes > FILES.attachmentBytes)
      throw new NodeError(
        'attachments_too_large',
        `The attachments have ${bytes} bytes together, at most ${FILES.attachmentBytes} are sent: send a link instead.`,
      )
    return rows.map((row, i) => ({
      name: attachments[i]!.name ?? row.name,
      type: row.content_type,
      content: () => Readable.from(lazily(() => files.read(host.organizationId, row))),
    }))
  }
  return {
    async send({ attachments = [], ...message }) {
      if (mailer) {
        host.reach('mail')
        return mailer.send({ ...message, attachments: await open(attachments) }, host.signal)
      }
      const settings = ports.mail.settings!.join(' and ')
      throw new NodeError(
        'mail_not_configured',
        `The service cannot send mails: its operator has not set ${settings}.`,
      )
    },
  }
}

/** A content that is opened when its first byte is needed: the mail server may keep the earlier ones for long. */
async function* lazily(open: () => Promise<AsyncIterable<Buffer>>): AsyncGenerator<Buffer, void, void> {
  yield* await open()
}
