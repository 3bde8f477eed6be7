import { AppError } from '../errors.ts'
import { itemOfMail, type RawMail } from './mail.ts'
import { tasks as mapping, type Refused } from './map-body.ts'
import { type HttpSource, readSource, type SourceItem, type SourcePage } from './source.ts'

/** What a thread computes of webhooks in the worker: mappings, and what polled sources answer. All are pure. */
export const tasks = { ...mapping, readPage, readMail }

/** The page of an answer. An AppError is returned: a thread could not throw it. */
function readPage(source: HttpSource, text: string): SourcePage | { refused: Refused } {
  try {
    return readSource(source, text)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { refused: { type: error.type, message: error.message, details: error.details } }
  }
}

/** A Buffer comes to a thread as a Uint8Array. */
function readMail({ content, ...mail }: RawMail): Promise<SourceItem> {
  return itemOfMail({ ...mail, content: Buffer.from(content.buffer, content.byteOffset, content.byteLength) })
}
