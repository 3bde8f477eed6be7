import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { diskStorage } from '../../../db/process/storage/disk.ts'
import { DamagedContent, openStream, sealStream } from '../../../db/process/storage/sealed-stream.ts'
import type { FileStorage } from '../../../db/process/storage/storage.ts'
import { type S3, startS3 } from '../../support/s3.ts'

async function* of(...parts: (Buffer | Error)[]): AsyncGenerator<Buffer> {
  for (const part of parts) {
    if (part instanceof Error) throw part
    yield part
  }
}

async function all(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of bytes) parts.push(part)
  return Buffer.concat(parts)
}

const temporary = () => readdirSync(tmpdir()).filter((name) => /^agx-[0-9a-f]{8}-/.test(name))

describe('the storage of files', () => {
  let s3: S3
  let folder: string
  before(async () => {
    s3 = await startS3()
    folder = mkdtempSync(join(tmpdir(), 'agx-disk-'))
  })
  after(async () => {
    await s3.stop()
    rmSync(folder, { recursive: true })
  })

  const storages: [string, () => FileStorage | Promise<FileStorage>][] = [
    ['on disk', () => diskStorage(folder)],
    ['in S3', () => s3.storage()],
  ]
  for (const [where, make] of storages)
    describe(where, () => {
      let storage: FileStorage
      before(async () => {
        storage = await make()
      })

      it('gives back what was written, until it is deleted', async () => {
        const parts = [randomBytes(70_000), randomBytes(1), randomBytes(6_000_000)]
        await storage.write('org/aa/file', of(...parts))
        ok((await all((await storage.read('org/aa/file'))!)).equals(Buffer.concat(parts)))
        await storage.delete('org/aa/file')
        equal(await storage.read('org/aa/file'), undefined)
        await storage.delete('org/aa/file')
      })

      it('keeps nothing of a content that ends with an error', async () => {
        await rejects(
          storage.write('org/aa/cut', of(randomBytes(100_000), new Error('it was cut'))),
          /it was cut/,
        )
        equal(await storage.read('org/aa/cut'), undefined)
        deepEqual(temporary(), [])
      })

      it('can be used', () => storage.check())
    })

  it('says what is wrong with a folder', async () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    await rejects(diskStorage(file).check(), {
      name: 'ConfigError',
      message: `FILES_DIR ${file} cannot be used: ENOTDIR`,
    })
  })

  for (const [what, settings, reason] of [
    ['another key', { key: 'OTHER' }, /FILES_S3_BUCKET agx cannot be used: InvalidAccessKeyId: .+/],
    ['another secret', { secret: 'other' }, /FILES_S3_BUCKET agx cannot be used: SignatureDoesNotMatch: .+/],
    [
      'a bucket that is not there',
      { bucket: 'other' },
      /FILES_S3_BUCKET other cannot be used: NoSuchBucket: .+/,
    ],
  ] as const)
    it(`says what is wrong with ${what}`, async () => {
      const storage = await s3.storage(settings)
      await rejects(storage.check(), (error: Error) => {
        equal(error.name, 'ConfigError')
        ok(reason.test(error.message) && !error.message.includes('\n'), error.message)
        return true
      })
    })
})

describe('a sealed content', () => {
  const key = randomBytes(32)
  const owner = Buffer.from('owner')
  const CHUNK = 65_536 + 16
  const sealed = (bytes: Buffer) => all(sealStream(key, owner, of(bytes)))
  const opened = (bytes: Buffer, { by = key, boundTo = owner } = {}) =>
    all(openStream(by, boundTo, of(bytes)))

  for (const size of [1, 65_535, 65_536, 65_537, 131_072, 200_000])
    it(`of ${size} bytes opens, in whatever parts it arrives`, async () => {
      const bytes = randomBytes(size)
      const whole = await sealed(bytes)
      ok((await opened(whole)).equals(bytes))
      const parts = Array.from({ length: Math.ceil(whole.length / 1_000) }, (_, i) =>
        whole.subarray(i * 1_000, (i + 1) * 1_000),
      )
      ok((await all(openStream(key, owner, of(...parts)))).equals(bytes))
    })

  const cases: [string, (bytes: Buffer) => Buffer][] = [
    [
      'that was changed',
      (bytes) => Buffer.concat([bytes.subarray(0, 5), Buffer.from([bytes[5]! ^ 1]), bytes.subarray(6)]),
    ],
    ['that lacks its last chunk', (bytes) => bytes.subarray(0, 2 * CHUNK)],
    ['that lacks its first chunk', (bytes) => bytes.subarray(CHUNK)],
    ['that lacks bytes', (bytes) => bytes.subarray(0, -1)],
    [
      'whose chunks changed places',
      (bytes) =>
        Buffer.concat([
          bytes.subarray(CHUNK, 2 * CHUNK),
          bytes.subarray(0, CHUNK),
          bytes.subarray(2 * CHUNK),
        ]),
    ],
    ['that has more', (bytes) => Buffer.concat([bytes, bytes.subarray(0, CHUNK)])],
    ['that is empty', () => Buffer.alloc(0)],
  ]
  for (const [what, change] of cases)
    it(`${what} does not open`, async () => {
      await rejects(opened(change(await sealed(randomBytes(200_000)))), DamagedContent)
    })

  it('does not open with another key, or for another owner', async () => {
    const bytes = await sealed(randomBytes(100))
    await rejects(opened(bytes, { by: randomBytes(32) }))
    await rejects(opened(bytes, { boundTo: Buffer.from('another') }))
  })
})
