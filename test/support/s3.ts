import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from '@20minutes/s3rver'
import { s3Storage } from '../../db/process/storage/s3.ts'

/** A server that speaks the protocol of S3, with the bucket `agx`. */
export async function startS3() {
  const directory = mkdtempSync(join(tmpdir(), 'agx-s3-'))
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: 'agx' }],
  })
  const { port } = await server.run()
  const endpoint = `http://127.0.0.1:${port}`
  /** A client of the server; by default with the right credentials. */
  const storage = ({ bucket = 'agx', key = 'S3RVER', secret = 'S3RVER' } = {}) =>
    s3Storage({
      bucket,
      region: 'us-east-1',
      endpoint,
      credentials: { accessKeyId: key, secretAccessKey: secret },
    })
  return {
    url: endpoint,
    storage,
    async stop() {
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

export type S3 = Awaited<ReturnType<typeof startS3>>
