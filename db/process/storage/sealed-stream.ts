import { createCipheriv, createDecipheriv } from 'node:crypto'

/**
 * Seals a content of any length a chunk at a time (the STREAM construction over AES-256-GCM): the nonce of a chunk is its
 * number and whether it is the last one, so that chunks cannot be moved, repeated or left out. Each content has a key of
 * its own.
 */

/** Bytes of a chunk before it is sealed; the last one may be shorter. */
const CHUNK = 65_536
const TAG = 16

/** The bytes of a sealed content. @param boundTo what `openStream` must be given, too. */
export async function* sealStream(
  key: Buffer,
  boundTo: Buffer,
  content: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, void> {
  let number = 0
  for await (const { bytes, isLast } of chunksOf(content, CHUNK)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonce(number++, isLast))
    cipher.setAAD(boundTo)
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }
}

/** What was read is not what was sealed. */
export class DamagedContent extends Error {}

/**
 * The content. Throws DamagedContent where it was altered or truncated, or sealed with another key or for something else.
 */
export async function* openStream(
  key: Buffer,
  boundTo: Buffer,
  sealed: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, void> {
  let number = 0
  for await (const { bytes, isLast } of chunksOf(sealed, CHUNK + TAG)) {
    if (bytes.length < TAG) throw new DamagedContent('the content is truncated')
    yield openChunk(key, nonce(number++, isLast), boundTo, bytes)
  }
}

function openChunk(key: Buffer, iv: Buffer, boundTo: Buffer, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG })
  decipher.setAAD(boundTo)
  decipher.setAuthTag(sealed.subarray(-TAG))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG)), decipher.final()])
  } catch {
    throw new DamagedContent('a chunk of the content does not open')
  }
}

function nonce(number: number, isLast: boolean): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32BE(number, 7)
  bytes[11] = isLast ? 1 : 0
  return bytes
}

/** Divides bytes into chunks of one size; the last one may be shorter, and is empty only without any bytes. */
async function* chunksOf(
  bytes: AsyncIterable<Buffer>,
  size: number,
): AsyncGenerator<{ bytes: Buffer; isLast: boolean }, void, void> {
  let waiting: Buffer[] = []
  let length = 0
  for await (const part of bytes) {
    waiting.push(part)
    length += part.length
    // A full chunk waits until there is more: it may be the last one.
    if (length <= size) continue
    const joined = Buffer.concat(waiting)
    let at = 0
    for (; length - at > size; at += size) yield { bytes: joined.subarray(at, at + size), isLast: false }
    waiting = [joined.subarray(at)]
    length -= at
  }
  yield { bytes: Buffer.concat(waiting), isLast: true }
}
