import type { IncomingMessage } from 'node:http'
import { type Encoding, encodingOf } from '../../db/csv/encoding.ts'
import { AppError } from '../../db/errors.ts'
import { refuseCompressed, tooLarge } from './body.ts'

/** A body that is a file: its bytes as they come in, and the `charset` of its Content-Type. */
export interface Upload {
  charset: Encoding | undefined
  /** Throws payload_too_large past the limit, and invalid_request where the client goes away. */
  bytes: AsyncIterable<Buffer>
}

/** Throws payload_too_large, unsupported_media_type; nothing is read yet. */
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
    throw new AppError('unsupported_media_type', `the charset ${named.slice(0, 50)} is not known`, {
      hint: 'send utf-8, utf-16 or windows-1252, or leave it out to have it found out',
    })
  return { charset, bytes: bytesOf(request, limit) }
}

async function* bytesOf(request: IncomingMessage, limit: number): AsyncGenerator<Buffer, void, void> {
  let size = 0
  try {
    // Whoever stops reading still has to answer, for which the connection must live.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length
      if (size > limit) throw tooLarge(limit)
      yield chunk
    }
  } catch (error) {
    throw error instanceof AppError ? error : new AppError('invalid_request', 'the request ended early')
  } finally {
    // What is left unread would stand before the next request of the connection.
    request.resume()
  }
}
