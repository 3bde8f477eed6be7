import type { IncomingMessage } from 'node:http'
import { type Encoding, encodingOf } from '../../db/model/csv/encoding.ts'
import { AppError } from '../../db/model/errors.ts'
import { refuseCompressed, tooLarge } from './body.ts'

/** The body of an upload: its bytes as a stream, and the `charset` of its Content-Type. */
export interface Upload {
  charset: Encoding | undefined
  /** Throws payload_too_large above the limit, and invalid_request if the client disconnects. */
  bytes: AsyncIterable<Buffer>
}

/** Throws payload_too_large, unsupported_media_type. Does not read the body. */
export function openUpload(request: IncomingMessage, type: string, limit: number): Upload {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  const [essence = '', ...parameters] = (request.headers['content-type'] ?? '').split(';')
  if (essence.trim().toLowerCase() !== type)
    throw new AppError('unsupported_media_type', `the body must be ${type}`, {
      hint: `send Content-Type: ${type}`,
    })
  refuseCompressed(request)
  const named = parameters.map((p) => /^charset="?([^"]+)"?$/i.exec(p.trim())?.[1]).find(Boolean)
  const charset = named === undefined ? undefined : encodingOf(named)
  if (named !== undefined && !charset)
    throw new AppError('unsupported_media_type', `the charset ${named.slice(0, 50)} is not supported`, {
      hint: 'send utf-8, utf-16 or windows-1252, or omit the charset: it is then detected',
    })
  return { charset, bytes: bytesOf(request, limit) }
}

async function* bytesOf(request: IncomingMessage, limit: number): AsyncGenerator<Buffer, void, void> {
  let size = 0
  try {
    // The connection stays open if reading stops early: the response needs it.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length
      if (size > limit) throw tooLarge(limit)
      yield chunk
    }
  } catch (error) {
    throw error instanceof AppError
      ? error
      : new AppError('invalid_request', 'the connection was closed before the end of the body')
  } finally {
    // Discards the remainder, which would block the next request of the connection.
    request.resume()
  }
}
