import { pipeline, Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { HTTP_LIMITS } from '../../workflows/effects/http.ts'
import { encodingsIn, undecodable } from './content-encoding.ts'

const DECODERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** The bytes of a body as they arrive, decoded by its Content-Encoding. Throws NodeError `undecodable_response`. */
export async function* fileContent(
  body: AsyncIterable<Buffer>,
  contentEncoding: string | undefined,
): AsyncGenerator<Buffer, void, void> {
  const encodings = encodingsIn(contentEncoding).filter((name) => name !== 'identity')
  if (encodings.length === 0) return yield* body
  if (encodings.length > HTTP_LIMITS.contentEncodings)
    throw undecodable(`the response has ${encodings.length} content encodings`)
  const decoders = encodings.reverse().map((name) => {
    if (!Object.hasOwn(DECODERS, name))
      throw undecodable(`the response has the content encoding ${name.slice(0, 50)}`)
    return DECODERS[name]!()
  })
  let failure: NodeJS.ErrnoException | undefined
  const source = Readable.from(body)
  pipeline([source, ...decoders], (error) => {
    failure = error ?? undefined
  })
  try {
    yield* decoders.at(-1)! as AsyncIterable<Buffer>
  } catch (error) {
    const { code = '' } = (failure ?? error) as NodeJS.ErrnoException
    if (code.startsWith('Z_') || code.startsWith('ERR_BROTLI') || code.startsWith('ERR__ERROR_'))
      throw undecodable(`the response is not valid ${encodings.join(', ')}`)
    throw failure ?? error
  }
}
