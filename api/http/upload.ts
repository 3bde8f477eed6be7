import type { IncomingMessage } from 'node:http'
import { type Encoding, encodingOf } from '../../db/model/csv/encoding.ts'
import { AppError } from '../../db/model/errors.ts'
import { mediaType } from '../../workflows/shared/files.ts'
import { refuseCompressed, tooLarge } from './body.ts'

/** The body of an upload: its bytes as a stream, with the type, charset and length that its headers give. */
export interface Upload {
  /** The media type, without parameters. */
  type: string
  /** The charset of a text. */
  charset: Encoding | undefined
  /** Content-Length, if it was sent. */
  length: number | undefined
  /** Throws payload_too_large above the limit, and invalid_request if the client disconnects. */
  bytes: AsyncIterable<Buffer>
}

/** Throws payload_too_large, unsupported_media_type. Does not read the body. */
export function openUpload(request: IncomingMessage, accepts: Accepted, limit: number): Upload {
  const { 'content-length': given, 'content-type': type } = request.headers
  const length = given === undefined ? undefined : Number(given)
  if ((length ?? 0) > limit) throw tooLarge(limit)
  const [essence = '', ...parameters] = (type ?? '').split(';')
  const sent = essence.trim().toLowerCase()
  if (accepts === ANY ? FORMS.has(sent) : sent !== accepts)
    throw new AppError('unsupported_media_type', EXPECTED[accepts].message, { hint: EXPECTED[accepts].hint })
  refuseCompressed(request)
  const bytes = bytesOf(request, limit)
  if (accepts === ANY) return { type: mediaType(type), charset: undefined, length, bytes }
  const named = parameters.map((p) => /^charset="?([^"]+)"?$/i.exec(p.trim())?.[1]).find(Boolean)
  const charset = named === undefined ? undefined : encodingOf(named)
  if (named !== undefined && !charset)
    throw new AppError('unsupported_media_type', `the charset ${named.slice(0, 50)} is not supported`, {
      hint: 'send utf-8, utf-16 or windows-1252, or omit the charset: it is then detected',
    })
  return { type: sent, charset, length, bytes }
}

/** Any type of file: the body is the file itself. */
export const ANY = '*/*'
/** What an upload may be. */
export type Accepted = 'text/csv' | typeof ANY

/** Bodies with parts or fields around the file, and the type that curl sends by itself. */
const FORMS = new Set(['multipart/form-data', 'application/x-www-form-urlencoded'])

const EXPECTED: Record<Accepted, { message: string; hint: string }> = {
  'text/csv': { message: 'the body must be text/csv', hint: 'send Content-Type: text/csv' },
  [ANY]: {
    message: 'the body must be the file itself, not a form',
    hint: 'send its bytes with its own Content-Type, such as application/pdf',
  },
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
