import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createTestDatabase, filesOf, type TestDatabase } from '../support/database.ts'
import { startS3 } from '../support/s3.ts'

describe('the API process', () => {
  let db: TestDatabase
  let taken: Server
  before(async () => {
    db = await createTestDatabase()
    taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
  })
  after(async () => {
    taken.close()
    await db.drop()
  })

  const secrets = { SECRETS_KEY: Buffer.alloc(32).toString('base64') }
  const start = (env: Record<string, string>): ChildProcess =>
    spawn(process.execPath, ['worker/run.mjs', 'api/main.ts'], {
      env: {
        ...process.env,
        DATABASE_URL: db.url,
        PORT: '0',
        SHUTDOWN_DELAY: '0',
        DATA_DIR: filesOf(db),
        ...secrets,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  async function refusal(env: Record<string, string>): Promise<string> {
    const child = start(env)
    let text = ''
    child.stderr!.on('data', (chunk) => {
      text += chunk
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    return text
  }

  it('completes open requests and exits with 0 on SIGTERM', async () => {
    const child = start({})
    const [line] = await once(child.stdout!, 'data')
    assert.match(String(line), /listening/)
    child.kill('SIGTERM')
    const [code] = await once(child, 'close')
    assert.equal(code, 0)
  })

  it('reports the invalid setting in one line, without the password', async () => {
    const port = String((taken.address() as AddressInfo).port)
    const s3 = await startS3()
    const wrong = {
      FILES_DIR: { FILES_DIR: '/dev/null' },
      FILES_S3_BUCKET: {
        FILES_S3_BUCKET: 'agx',
        FILES_S3_ENDPOINT: s3.url,
        AWS_ACCESS_KEY_ID: 'S3RVER',
        AWS_SECRET_ACCESS_KEY: 'hunter2',
      },
      PORT: { PORT: port },
      DATABASE_URL: { DATABASE_URL: 'postgres://ann:hunter2@127.0.0.1:1/none' },
      SECRETS_KEY: { SECRETS_KEY: 'short' },
    }
    for (const [name, env] of Object.entries(wrong)) {
      const text = await refusal(env)
      assert.match(text, new RegExp(`^agx api: ${name} .+\\n$`))
      assert.doesNotMatch(text, /hunter2/)
    }
    await s3.stop()
  })
})
