import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib'
import { HTTP_LIMITS } from '../../workflows/effects/http.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { tooLarge } from './too-large.ts'

type Decode = (bytes: Buffer, limits: { maxOutputLength: number }) => Promise<Buffer>

const unzip: Decode = promisify(gunzip)
const unwrap: Decode = promisify(inflate)
const unwrapRaw: Decode = promisify(inflateRaw)

const DECODERS: Record<string, Decode> = {
  gzip: unzip,
  'x-gzip': unzip,
  // Some servers send it without the zlib wrapper, which RFC 9110 requires.
  deflate: (bytes, limits) => (hasZlibHeader(bytes) ? unwrap(bytes, limits) : unwrapRaw(bytes, limits)),
  br: promisify(brotliDecompress),
  identity: async (bytes) => bytes,
}

/**
 * Decodes a body by its Content-Encoding header. Stops at `maxBytes`, so that a small body cannot fill the memory.
 * Throws NodeError `response_too_large`, `undecodable_response`.
 */
export async function decodeContent(
  body: Buffer,
  header: string | undefined,
  maxBytes: number,
): Promise<Buffer> {
  const encodings = encodingsIn(header)
  // A response without a body (HEAD, 304) can name the encoding that the body would have.
  if (body.length === 0 || encodings.length === 0) return body
  if (encodings.length > HTTP_LIMITS.contentEncodings)
    throw undecodable(
      `the response has ${encodings.length} content encodings: at most ${HTTP_LIMITS.contentEncodings} are decoded`,
    )
  let decoded = body
  for (const name of encodings.reverse()) {
    const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined
    if (!decode)
      throw undecodable(
        `the response has the content encoding ${name.slice(0, 50)}: only gzip, deflate and br are decoded`,
      )
    decoded = await decode(decoded, { maxOutputLength: maxBytes }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes, 'when it is decoded')
      throw undecodable(`the response is not valid ${name}`)
    })
  }
  return decoded
}

/** The names in a Content-Encoding header. */
export const encodingsIn = (header: string | undefined): string[] =>
  (header ?? '')
    .toLowerCase()
    .split(',')
    .flatMap((name) => name.trim() || [])

export const undecodable = (message: string) => new NodeError('undecodable_response', message)

/** RFC 1950: the compression method is 8, and the first two bytes are a multiple of 31. */
const hasZlibHeader = (bytes: Buffer) =>
  bytes.length >= 2 && (bytes[0]! & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0
