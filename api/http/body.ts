import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { type ParseError, parse } from 'jsonc-parser'
import { AppError, type Issue } from '../../db/model/errors.ts'
import { isStorable } from '../../workflows/shared/storable-text.ts'

export const MAX_BODY = 1024 * 1024
const MAX_DEPTH = 64

/** Time limit for receiving a body: far more than a slow connection needs for a megabyte. */
export const BODY_MS = 30_000

/**
 * The bytes of a request body. Throws payload_too_large above `limit` bytes, and invalid_request if the body does not
 * arrive in time; then it stops reading.
 */
export async function readBody(
  request: IncomingMessage,
  limit = MAX_BODY,
  milliseconds = BODY_MS,
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  const chunks: Buffer[] = []
  let size = 0
  return new Promise((resolve, reject) => {
    const stop = (error: Error) => {
      clearTimeout(timer)
      request.off('data', onData)
      request.pause()
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) return stop(tooLarge(limit))
      chunks.push(chunk)
    }
    const timer = setTimeout(
      () => stop(new AppError('invalid_request', 'the body was not complete within the time limit')),
      milliseconds,
    )
    request.on('data', onData)
    request.once('end', () => {
      clearTimeout(timer)
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    })
    request.once('error', stop)
    request.once('aborted', () =>
      stop(new AppError('invalid_request', 'the connection was closed before the end of the body')),
    )
  })
}

/** Throws unsupported_media_type unless Content-Type is JSON in UTF-8. */
export function requireJson(request: IncomingMessage): void {
  const type = request.headers['content-type'] ?? ''
  const [essence = '', ...parameters] = type.toLowerCase().split(';')
  const json = /^application\/(json|[\w.+-]+\+json)$/.test(essence.trim())
  const charset = parameters.map((p) => /^charset="?([^"]+)"?$/.exec(p.trim())?.[1]).find(Boolean)
  if (!json || (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8'))
    throw new AppError('unsupported_media_type', 'the body must be JSON', {
      hint: 'send Content-Type: application/json',
    })
  refuseCompressed(request)
}

export function refuseCompressed(request: IncomingMessage): void {
  const encoding = request.headers['content-encoding']
  if (encoding && encoding !== 'identity')
    throw new AppError('unsupported_media_type', 'compressed bodies are not accepted')
}

/** Throws invalid_request with the position of the syntax error, or if the nesting is deeper than 64. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new AppError('invalid_request', 'the body is not UTF-8')
  const text = bytes.toString('utf8')
  try {
    const value: unknown = JSON.parse(text)
    if (depthExceeds(value, MAX_DEPTH))
      throw new AppError('invalid_request', `the body is nested deeper than ${MAX_DEPTH} levels`)
    return value
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('invalid_request', `the body is not valid JSON${position(text)}`)
  }
}

function depthExceeds(value: unknown, left: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (left === 0) return true
  for (const member of Object.values(value)) if (depthExceeds(member, left - 1)) return true
  return false
}

/** Maximum length, in characters, of a body whose syntax error is located: locating it costs more than parsing. */
const MAX_LOCATED = 100_000

/** The position of the syntax error. The messages of JSON.parse often omit the position, and quote the body. */
function position(text: string): string {
  const offset = text.length > MAX_LOCATED ? undefined : errorOffset(text)
  if (offset === undefined) return ''
  const lines = text.slice(0, offset).split('\n')
  return ` at line ${lines.length}, column ${lines.at(-1)!.length + 1}`
}

function errorOffset(text: string): number | undefined {
  const errors: ParseError[] = []
  try {
    parse(text, errors, { disallowComments: true })
  } catch (error) {
    // The parser is recursive: thousands of levels overflow the stack.
    if (!(error instanceof RangeError)) throw error
  }
  return errors[0]?.offset
}

/** Matches every JSON text with NUL, a lone surrogate or a `__proto__` key, and some that are valid. */
const SUSPECT = /\\u(0000|d[89a-f])|__proto__|\\u005f/i

/** Issues of text that cannot be stored and of forbidden keys, so that schemas need not check them. */
export function unsafeText(value: unknown, loc: Issue['loc']): Issue[] {
  if (typeof value === 'string')
    return isStorable(value) ? [] : [{ loc, msg: 'contains NUL or a lone surrogate', type: 'invalid_text' }]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) =>
    key === '__proto__' || !isStorable(key)
      ? [{ loc: [...loc, key], msg: 'this key is not allowed', type: 'invalid_key' }]
      : unsafeText(member, [...loc, Array.isArray(value) ? Number(key) : key]),
  )
}

/** Whether the body needs a check with `unsafeText`. */
export const isSuspect = (bytes: Buffer) => SUSPECT.test(bytes.toString('latin1'))

export const tooLarge = (limit: number) =>
  new AppError('payload_too_large', `the body is larger than ${limit.toLocaleString('en')} bytes`)
