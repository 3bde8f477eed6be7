import type { IncomingMessage } from 'node:http'
import { AppError } from '../../../db/model/errors.ts'
import { BODY_MS } from '../../http/body.ts'

/** The file of a form: its bytes come while they are read. */
export interface FormFile {
  name: string
  bytes: AsyncIterable<Buffer>
  /** Drops what was not read, which would block the next request of the connection. */
  discard(): Promise<void>
}

/** The head of a part. */
const MAX_HEAD = 8 * 1024
/** All fields together, with their heads: the file is not among them. */
const MAX_FIELDS = 256 * 1024
const MAX_PARTS = 100
const LINE = Buffer.from('\r\n')

/**
 * The parts of a form with a file (RFC 7578), whose file is its last part, so that it is passed on without being kept.
 * The fields before it must arrive within the time limit of other bodies. Throws invalid_request, payload_too_large.
 */
export async function readMultipart(
  request: IncomingMessage,
  boundary: string,
  milliseconds = BODY_MS,
): Promise<{ fields: [string, Buffer][]; file: FormFile | undefined }> {
  const parts = new Parts(request, Buffer.from(`\r\n--${boundary}`))
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const error = malformed('the fields of the form were not complete within the time limit')
    timer = setTimeout(() => reject(error), milliseconds)
  })
  try {
    return await Promise.race([read(parts), late])
  } catch (error) {
    if (request.complete) await parts.discard()
    else parts.stop()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

async function read(parts: Parts) {
  const fields: [string, Buffer][] = []
  let left = MAX_FIELDS
  await parts.until(MAX_HEAD)
  for (let count = 1; await parts.begin(); count++) {
    if (count > MAX_PARTS)
      throw new AppError('payload_too_large', `the form has more than ${MAX_PARTS} parts`)
    const bytes = await parts.head()
    left -= bytes.length
    const head = bytes.toString('utf8')
    const name = quoted(head, 'name')
    if (name === undefined) throw malformed('a part of the form has no name')
    const file = quoted(head, 'filename')
    // A browser sends an empty one where none was chosen.
    if (file) return { fields, file: { name: file, bytes: parts.rest(), discard: () => parts.discard() } }
    const value = await parts.until(left)
    left -= value.length
    // A copy: a part of the buffer would keep all of it in memory.
    if (file === undefined) fields.push([name, Buffer.from(value)])
  }
  return { fields, file: undefined }
}

/** `name="a\"b"` of a head; browsers write a quote as %22. */
const quoted = (head: string, name: string) =>
  new RegExp(`content-disposition:[^\\r\\n]*?[;\\s]${name}="([^"]*)"`, 'i')
    .exec(head)?.[1]
    ?.replaceAll('%22', '"')

const malformed = (message: string) => new AppError('invalid_request', message)

class Parts {
  /** The first delimiter has no line break before it. */
  private buffer: Buffer = LINE
  private isStopped = false
  private readonly chunks: AsyncIterator<Buffer>
  private readonly delimiter: Buffer

  private readonly request: IncomingMessage

  constructor(request: IncomingMessage, delimiter: Buffer) {
    this.request = request
    this.chunks = request.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]()
    this.delimiter = delimiter
  }

  /** What comes before the next delimiter, which it takes too. */
  until(most: number): Promise<Buffer> {
    return this.take(this.delimiter, most)
  }

  /** Whether another part follows the delimiter. */
  async begin(): Promise<boolean> {
    while (this.buffer.length < 2) await this.fill()
    const isEnd = this.buffer.subarray(0, 2).toString() === '--'
    if (!isEnd) await this.take(LINE, MAX_HEAD)
    return !isEnd
  }

  async head(): Promise<Buffer> {
    return this.take(Buffer.from('\r\n\r\n'), MAX_HEAD)
  }

  /** The content of the last part. */
  async *rest(): AsyncGenerator<Buffer, void, void> {
    for (;;) {
      const at = this.buffer.indexOf(this.delimiter)
      // The delimiter may begin in this chunk and end in the next one.
      const sure = at < 0 ? Math.max(0, this.buffer.length - this.delimiter.length) : at
      if (sure > 0) yield this.buffer.subarray(0, sure)
      this.buffer = this.buffer.subarray(sure)
      if (at >= 0) return
      await this.fill()
    }
  }

  async discard(): Promise<void> {
    await this.chunks.return?.()
    this.request.resume()
  }

  /** Reads no more, without waiting for a chunk that may never come: the connection closes after the answer. */
  stop(): void {
    this.isStopped = true
    this.chunks.return?.().catch(() => {})
    this.request.pause()
  }

  private async take(end: Buffer, most: number): Promise<Buffer> {
    for (;;) {
      const at = this.buffer.indexOf(end)
      if ((at < 0 ? this.buffer.length - end.length : at) > most)
        throw new AppError('payload_too_large', 'the fields of the form are too long')
      if (at >= 0) {
        const found = this.buffer.subarray(0, at)
        this.buffer = this.buffer.subarray(at + end.length)
        return found
      }
      await this.fill()
    }
  }

  private async fill(): Promise<void> {
    const { value, done } = await this.chunks.next()
    if (done || this.isStopped) throw malformed('the form ended too early')
    this.buffer = Buffer.concat([this.buffer, value])
  }
}
