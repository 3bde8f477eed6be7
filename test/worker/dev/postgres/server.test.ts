import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { type EmbeddedPostgres, startPostgres } from '../../../../worker/dev/postgres/server.ts'
import { temporaryFolder } from '../../../support/folder.ts'
import { reaper } from '../../../support/reaper.ts'

describe('the PostgreSQL of a data folder', () => {
  let dataDir: string
  let server: EmbeddedPostgres
  let stranger: ChildProcess
  const start = () => startPostgres({ dataDir, logFile: join(dataDir, 'postgres.log'), fast: true })
  const lockFile = () => join(server.folder, 'postmaster.pid')
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => {
    const pid = Number(readFileSync(lockFile(), 'utf8').split('\n')[0])
    // A start that fails leaves our own pid in the file.
    assert.ok(pid > 0 && pid !== process.pid, 'the server is running')
    process.kill(pid, signal)
  }

  before(async () => {
    dataDir = temporaryFolder()
    stranger = spawn('sleep', ['600'], { stdio: 'ignore' })
    server = await start()
  })

  after(async () => {
    stranger.kill()
    await reaper(
      `grep -qx ${process.pid} '${lockFile()}' || kill -QUIT $(head -n 1 '${lockFile()}'); sleep 0.2; rm -rf '${server.folder}' '${dataDir}'`,
    )()
  })

  it('starts after kill -9, as soon as its remaining sessions have ended', async () => {
    const session = new pg.Client({ connectionString: server.ownerUrl })
    session.on('error', () => {})
    await session.connect()
    // A busy session notices that its server is gone only when it sends its result.
    const busy = session.query('select count(*) from generate_series(1, 6000000)').catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 100))
    kill()
    server = await start()
    assert.equal(server.adopted, false)
    assert.match(readFileSync(join(dataDir, 'postgres.log'), 'utf8'), /shared memory block .* still in use/)
    await busy
  })

  it('starts while the previous server is shutting down', async () => {
    const session = new pg.Client({ connectionString: server.ownerUrl })
    session.on('error', () => {})
    await session.connect()
    // A smart shutdown waits for the session.
    kill('SIGTERM')
    await new Promise((resolve) => setTimeout(resolve, 100))
    const [next] = await Promise.all([
      start(),
      new Promise((r) => setTimeout(r, 300)).then(() => session.end()),
    ])
    server = next
    assert.equal(server.adopted, false)
  })

  it('starts if the lock file names an unrelated process or is empty', async () => {
    for (const rewrite of [(lock: string) => lock.replace(/^\d+/, String(stranger.pid)), () => '']) {
      const lock = readFileSync(lockFile(), 'utf8')
      kill()
      writeFileSync(lockFile(), rewrite(lock))
      server = await start()
      assert.equal(server.adopted, false)
    }
  })
})
