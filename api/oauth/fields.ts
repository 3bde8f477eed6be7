import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { AppError } from '../../db/model/errors.ts'
import { readBody, refuseCompressed } from '../http/body.ts'
import { requireUtf8 } from '../http/received.ts'
import { OAuthError } from './errors.ts'

export const MAX_BODY = 32 * 1024

/**
 * The parameters of a request to the token or revocation endpoint. As RFC 6749 says, empty ones count as absent, none may
 * be repeated, and unknown ones have no effect. Throws OAuthError, AppError.
 */
export async function readFields(request: IncomingMessage): Promise<Map<string, string>> {
  const [type = ''] = (request.headers['content-type'] ?? '').toLowerCase().split(';')
  if (type.trim() !== 'application/x-www-form-urlencoded')
    throw new OAuthError('invalid_request', 'send the parameters as application/x-www-form-urlencoded')
  refuseCompressed(request)
  const bytes = await readBody(request, MAX_BODY)
  if (!isUtf8(bytes)) throw new AppError('invalid_request', 'the body is not UTF-8')
  const text = bytes.toString('utf8')
  requireUtf8(text, 'the body')
  const fields = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (fields.has(name))
      throw new OAuthError('invalid_request', `${name.slice(0, 50)} is sent more than once`)
    if (value !== '') fields.set(name, value)
  }
  return fields
}

/** A parameter that the request must have. Throws OAuthError. */
export function required(fields: Map<string, string>, name: string): string {
  const value = fields.get(name)
  if (value === undefined) throw new OAuthError('invalid_request', `${name} is missing`)
  return value
}
