import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { S3ClientConfig, S3ServiceException } from '@aws-sdk/client-s3'
import { ConfigError } from '../../model/config-error.ts'
import type { FileStorage } from './storage.ts'

export interface S3Config {
  bucket: string
  region: string
  /** The URL of an S3-compatible server; undefined: AWS. */
  endpoint?: string | undefined
  /** Default: the standard variables and files of AWS. */
  credentials?: NonNullable<S3ClientConfig['credentials']>
}

/** Objects of a bucket of S3, or of a server that speaks its protocol. */
export async function s3Storage(config: S3Config): Promise<FileStorage> {
  // A notice of several lines about Node.js, before the one line that says what is wrong.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'
  // Loaded only where it is configured: it takes 30 MB of memory.
  const { S3Client, PutObjectCommand, GetObjectCommand, DeleteObjectCommand } = await import(
    '@aws-sdk/client-s3'
  )
  const { bucket: Bucket, region, endpoint, credentials } = config
  const client = new S3Client({
    region,
    // Compatible servers rarely have a host name for each bucket.
    ...(endpoint && { endpoint, forcePathStyle: true }),
    ...(credentials && { credentials }),
    // Many compatible servers refuse the checksums that the SDK adds; the content is authenticated by its seal.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: 5_000,
      // Ends the wait for a server that sends nothing, and for a client that reads nothing of its download.
      socketTimeout: IDLE_MS,
      // A download that is read slowly keeps its connection, and must not keep others waiting.
      httpAgent: { keepAlive: true, maxSockets: CONNECTIONS },
      httpsAgent: { keepAlive: true, maxSockets: CONNECTIONS },
    },
    // The errors are logged where they are handled.
    logger: { trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  })
  const put = async (Key: string, content: AsyncIterable<Buffer>) => {
    const spooled = await spool(content)
    try {
      // The SDK repeats no request whose body is a stream.
      await attempted(() =>
        client.send(
          new PutObjectCommand({ Bucket, Key, Body: spooled.read(), ContentLength: spooled.bytes }),
        ),
      )
    } finally {
      await spooled.close()
    }
  }
  return {
    write: put,
    async read(Key) {
      try {
        const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }))
        return Body as Readable | undefined
      } catch (error) {
        if ((error as S3ServiceException).name === 'NoSuchKey') return undefined
        throw error
      }
    },
    async delete(Key) {
      await client.send(new DeleteObjectCommand({ Bucket, Key }))
    },
    async check() {
      const key = `check/${randomUUID()}`
      try {
        await put(key, oneByte())
        await client.send(new DeleteObjectCommand({ Bucket, Key: key }))
      } catch (error) {
        const { name, message, $metadata } = error as S3ServiceException
        const status = $metadata?.httpStatusCode ?? 0
        const isMisconfigured = (status >= 300 && status < 500 && status !== 429) || name === NO_CREDENTIALS
        if (!isMisconfigured) throw error
        throw new ConfigError(`FILES_S3_BUCKET ${Bucket} cannot be used: ${name}: ${message}`)
      }
    },
  }
}

const NO_CREDENTIALS = 'CredentialsProviderError'

const ATTEMPTS = 3
const IDLE_MS = 15_000
/** As many as an api process has by default. */
const CONNECTIONS = 2_000

/** Repeats a request after an error of the server or of the connection. */
async function attempted(request: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await request()
      return
    } catch (error) {
      const status = (error as S3ServiceException).$metadata?.httpStatusCode ?? 500
      if (attempt === ATTEMPTS || (status < 500 && status !== 429)) throw error
      await pause(100 * 2 ** attempt)
    }
  }
}

/**
 * Writes a content into a temporary file that has no name any more, so that nothing is left of it when the process dies.
 * An object is then sent with its length, at once: a multipart upload would leave its parts in the bucket.
 */
async function spool(content: AsyncIterable<Buffer>) {
  const path = join(tmpdir(), `agx-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600)
  try {
    await unlink(path)
    let bytes = 0
    for await (const part of content) {
      await file.write(part, 0, part.length, bytes)
      bytes += part.length
    }
    let reader: Readable | undefined
    return {
      bytes,
      read() {
        reader?.destroy()
        reader = Readable.from(partsOf(file), { objectMode: false })
        // A request that failed leaves it in the middle of a part: its error would end the process.
        reader.on('error', () => {})
        return reader
      },
      async close() {
        reader?.destroy()
        await file.close()
      },
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

const PART = 65_536

async function* partsOf(file: FileHandle): AsyncGenerator<Buffer, void, void> {
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(PART), 0, PART, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function* oneByte() {
  yield Buffer.from('1')
}
