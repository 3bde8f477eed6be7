import type { OpenMailbox } from '../../activities/mail/mailbox.ts'
import { openSecrets } from '../../db/access/secrets.ts'
import type { MailSource, SourceItem } from '../../db/model/incoming/source.ts'
import { type InTenant, type PageDeps, type PageReader, Problem } from './page.ts'

/** A place in a folder: the UID up to which it was read, under the server's name for their numbering. */
interface Place {
  validity: string
  uid: number
  /** Mails received before are left out: those of a folder that was numbered anew. */
  since?: string
}

/** How far clocks may differ. A mail that is read again because of it is known by its Message-ID. */
const OVERLAP_MS = 3_600_000

/** The pages of a folder of a mailbox, which is opened with the first. */
export function mailPages(
  { openMailbox, secretsKey, threads }: PageDeps,
  tenant: InTenant,
  organizationId: string,
  source: MailSource & { existing: boolean },
): PageReader {
  let mailbox: OpenMailbox | undefined
  const opened = async () => {
    const { password_secret } = source
    const password = (await tenant((tx) => openSecrets(tx, secretsKey))).get(password_secret)
    if (password === undefined)
      throw new Problem(`the organization has no secret ${password_secret} that can be read`, {
        isRefused: true,
      })
    return openMailbox(source, password)
  }
  return {
    async read(state) {
      mailbox ??= await opened()
      const { validity, lastUid } = mailbox
      let place: Place = state.cursor ? JSON.parse(state.cursor) : { validity, uid: 0 }
      if (!state.cursor && !source.existing)
        return { items: [], cursor: JSON.stringify({ validity, uid: lastUid }), isLast: true }
      const isRenumbered = place.validity !== validity
      if (isRenumbered) {
        const since = state.read_at && new Date(Date.parse(state.read_at) - OVERLAP_MS).toISOString()
        place = { validity, uid: 0, ...(since && { since }) }
      }
      const { since } = place
      const { mails, end } = await mailbox.mailsAbove(place.uid, since ? new Date(since) : undefined)
      const isLast = end >= lastUid
      const items: SourceItem[] = []
      for (const mail of mails) items.push(await threads.readMail(organizationId, mail))
      return {
        items,
        cursor: JSON.stringify({ validity, uid: end, ...(!isLast && since && { since }) }),
        isLast,
        ...(isRenumbered && {
          notice: `the server has numbered the mails of ${source.folder} anew (UIDVALIDITY): those received since ${since ?? 'the beginning'} were read again`,
        }),
      }
    },
    close: () => mailbox?.close(),
  }
}
