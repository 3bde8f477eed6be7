import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { processIdentity, waitForExit } from '../../../../worker/dev/postgres/process.ts'

/** A process that listens, and whose large memory delays its end. */
const LARGE = `
  globalThis.held = Buffer.alloc(600_000_000, 1)
  require('node:net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })`

describe('a process that was killed', () => {
  it('is gone only when its port is free', async () => {
    const child = spawn(process.execPath, ['-e', LARGE], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = await once(child.stdout, 'data')
    const identity = processIdentity(child.pid!)!
    child.kill('SIGKILL')
    assert.equal(await waitForExit(child.pid!, identity, 10_000), true)
    const server = createServer().listen(Number(line), '127.0.0.1')
    await once(server, 'listening')
    server.close()
  })
})
