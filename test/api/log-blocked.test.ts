import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess, type TestProcess } from '../support/process.ts'

/** Their lines fill a pipe that nobody reads. */
const REQUESTS = 2_000
const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

describe('an api process whose log cannot be written', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agx-log-'))
  let db: TestDatabase
  let api: TestProcess | undefined
  before(async () => {
    db = await createTestDatabase()
  })
  afterEach(() => {
    api?.child.kill('SIGKILL')
  })
  after(async () => {
    rmSync(folder, { recursive: true })
    await db.drop()
  })

  /** A pipe of the shell's kind. @returns both ends. */
  function pipe(name: string): { read: number; write: number } {
    const path = join(folder, name)
    execFileSync('mkfifo', [path])
    // The reading end does not wait for a writer.
    const read = openSync(path, O_RDONLY | O_NONBLOCK)
    return { read, write: openSync(path, O_WRONLY) }
  }

  const start = async (stdout: number) => {
    // Probes are lines of this level.
    const env = { LOG_LEVEL: 'debug' }
    api = await startProcess('api', { databaseUrl: db.url, stdio: ['ignore', stdout, 'ignore'], env })
    closeSync(stdout)
    return api
  }

  async function request(url: string, count = REQUESTS): Promise<void> {
    for (let sent = 0; sent < count; sent += 50)
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(30_000) })
          assert.equal(response.status, 200)
          await response.arrayBuffer()
        }),
      )
  }

  async function ends(process: TestProcess): Promise<void> {
    const { code, milliseconds } = await process.stop()
    assert.equal(code, 0)
    assert.ok(milliseconds < 30_000, `it took ${milliseconds} ms`)
  }

  it('serves and ends while nobody reads its pipe', async () => {
    const { read, write } = pipe('unread')
    const process = await start(write)
    await request(process.url)
    await ends(process)
    closeSync(read)
  })

  it('serves and ends when the reader of its pipe has gone', async () => {
    const { read, write } = pipe('closed')
    const process = await start(write)
    closeSync(read)
    await request(process.url, 200)
    await ends(process)
  })

  it('serves and ends on a full disk', async () => {
    const process = await start(openSync('/dev/full', 'w'))
    await request(process.url, 200)
    await ends(process)
  })

  it('logs how many lines it dropped once somebody reads again', async () => {
    const { read, write } = pipe('late')
    const process = await start(write)
    // More than the capacity of the pipe and of the pending lines.
    for (let round = 0; round < 4; round++) await request(process.url)
    const chunk = Buffer.alloc(65_536)
    let text = ''
    for (const end = Date.now() + 10_000; Date.now() < end && !text.includes('were dropped'); ) {
      try {
        text += chunk.toString('utf8', 0, readSync(read, chunk))
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20))
        await fetch(`${process.url}/healthz`)
      }
    }
    const lines = text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { msg: string; dropped?: number })
    assert.ok(lines.find(({ msg }) => msg.startsWith('log lines were dropped'))!.dropped! > 0)
    await ends(process)
    closeSync(read)
  })
})
