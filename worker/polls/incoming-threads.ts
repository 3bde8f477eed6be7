import type { MapBody } from '../../db/incoming/replays.ts'
import { itemOfMail, type RawMail, unreadMail } from '../../db/model/incoming/mail.ts'
import {
  type HttpSource,
  readSource,
  type SourceItem,
  type SourcePage,
} from '../../db/model/incoming/source.ts'
import type { tasks } from '../../db/model/incoming/source-tasks.ts'
import { accepted, mapIn, withinLimits } from '../../db/process/compute/map-in-thread.ts'
import { ComputeError, Pool } from '../../db/process/compute/pool.ts'

/** What takes a few milliseconds: to hand it to a thread costs more than it saves. */
const INLINE = { mailBytes: 4_096, pageCharacters: 8_192 } as const

/** What the worker computes of the requests of webhooks, in threads if it may take long. */
export interface IncomingThreads {
  mapBody: MapBody
  /** Throws what `readSource` throws, and `invalid_request` for an answer that is too expensive. */
  readPage(organizationId: string, source: HttpSource, text: string): Promise<SourcePage>
  /** A mail that is too expensive is an item with its text as it came. */
  readMail(organizationId: string, mail: RawMail): Promise<SourceItem>
}

/** Threads start with the first large task, and end when they are idle. `onTask`: as that of Pool. */
export function incomingThreads(onTask?: (task: string) => void): IncomingThreads {
  const pool = new Pool<typeof tasks>({
    module: new URL('../../db/model/incoming/source-tasks.ts', import.meta.url),
    // Nobody waits for an answer, and what a busy machine gives up is taken as it came: longer than in a request.
    deadlineMs: 30_000,
    onTask,
  })
  return {
    mapBody: (organizationId, body, mapping) => mapIn(pool, organizationId, body, mapping),
    async readPage(organizationId, source, text) {
      if (text.length <= INLINE.pageCharacters) return readSource(source, text)
      const page = accepted(
        await withinLimits('the answer of the source', () =>
          pool.run(organizationId, 'readPage', source, text),
        ),
      )
      return { ...page, items: page.items.map(withBuffer) }
    },
    async readMail(organizationId, mail) {
      if (mail.content.length <= INLINE.mailBytes) return itemOfMail(mail)
      const read = pool.run(organizationId, 'readMail', mail).then(withBuffer)
      return read.catch((error: unknown) => {
        // Nobody may stop a mailbox by one mail.
        if (error instanceof ComputeError && error.limit !== 'waiting') return unreadMail(mail)
        return withinLimits('the mail', () => Promise.reject(error))
      })
    },
  }
}

/** A Buffer comes from a thread as a Uint8Array. */
const withBuffer = ({ fingerprint, payload }: SourceItem): SourceItem => ({
  fingerprint: Buffer.from(fingerprint),
  payload,
})
