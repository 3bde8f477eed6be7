import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { MAX_BODY } from '../http/body.ts'
import { Refusal } from './answer.ts'
import type { Call } from './call.ts'
import { payloadOfToken } from './signatures.ts'

const unzip = promisify(gunzip)

/** Reads what a verified body says. Throws as `decompressed`. */
export async function readContent(call: Call, bytes: Buffer): Promise<void> {
  const { ctx, webhook } = call
  const payload = webhook.verification.type === 'dialpad' ? payloadOfToken(bytes) : undefined
  call.content = payload ?? (await decompressed(ctx.req, bytes))
  if (payload) call.contentType = 'application/json'
}

/**
 * The body without its gzip encoding. Its size is limited like that of a plain one, so that no bomb expands.
 * Throws unsupported_media_type for other encodings, invalid_payload, payload_too_large.
 */
async function decompressed(request: IncomingMessage, bytes: Buffer): Promise<Buffer> {
  const encoding = request.headers['content-encoding']?.trim().toLowerCase()
  if (!encoding || encoding === 'identity') return bytes
  if (encoding !== 'gzip' && encoding !== 'x-gzip')
    throw new Refusal('unsupported_media_type', 'of compressed bodies only gzip is accepted')
  return unzip(bytes, { maxOutputLength: MAX_BODY }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE'
      ? new Refusal('payload_too_large', `the body has more than ${MAX_BODY} bytes without its compression`)
      : new Refusal('invalid_payload', 'the body is not valid gzip')
  })
}
