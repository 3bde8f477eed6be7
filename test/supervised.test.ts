import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createKey } from './support/api.ts'
import { SHARED_DATA } from './support/bundle.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from './support/database.ts'
import { temporaryFolder } from './support/folder.ts'
import { quietPort } from './support/quiet-port.ts'
import { until } from './support/until.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/**
 * A shell that keeps running beside its command, as `sh` does on some systems: others replace themselves by the last
 * command, which hides that a signal to the shell does not reach it.
 */
const SHELL = '#!/bin/sh\neval "$2"\nexit $?\n'

describe('a process that a supervisor starts by npm', () => {
  let db: TestDatabase
  const groups: number[] = []
  const shell = join(temporaryFolder(), 'shell')

  before(async () => {
    db = await createTestDatabase()
    await createKey(db, await createOrganization(db))
    writeFileSync(shell, SHELL)
    chmodSync(shell, 0o755)
  })
  afterEach(() => {
    for (const group of groups.splice(0))
      try {
        process.kill(-group, 'SIGKILL')
      } catch {}
  })
  after(() => db?.drop())

  async function start(name: 'api' | 'worker', env: Record<string, string> = {}) {
    const port = await quietPort()
    const child = spawn('npm', ['run', '--silent', name], {
      cwd: ROOT,
      // A group of its own, as a supervisor gives each service.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        NODE_ENV: 'test',
        NODE_OPTIONS: '',
        NODE_V8_COVERAGE: '',
        npm_config_script_shell: shell,
        DATABASE_URL: db.url,
        DATA_DIR: SHARED_DATA,
        SECRETS_KEY: Buffer.alloc(32).toString('base64'),
        TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS,
        TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
        // No balancer polls it.
        SHUTDOWN_DELAY: '0',
        PORT: String(port),
        WORKER_PORT: String(port),
        ...env,
      },
    })
    groups.push(child.pid!)
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const url = `http://127.0.0.1:${port}`
    await until(async () => {
      const answer = await fetch(`${url}/readyz`).catch(() => undefined)
      assert.equal(child.exitCode, null, output)
      return answer?.status === 200 || undefined
    }, `/readyz of the ${name}`)
    const closed = once(child, 'exit')
    return { pid: child.pid!, url, closed, output: () => output }
  }

  /** The processes of the group that remain. */
  const isAlive = (group: number): boolean => {
    try {
      process.kill(-group, 0)
      return true
    } catch {
      return false
    }
  }

  for (const name of ['api', 'worker'] as const) {
    it(`ends as a whole when npm gets SIGTERM: ${name}`, async () => {
      const { pid, url, closed, output } = await start(name)
      process.kill(pid, 'SIGTERM')
      const [code] = await closed
      assert.equal(code, 0, output())
      await assert.rejects(fetch(`${url}/healthz`), 'the port is free for the replacement')
      await until(() => !isAlive(pid), 'the end of the group')
      assert.match(output(), /"msg":"stopping"/)
    })

    it(`stops once when the whole group gets SIGTERM, which npm passes on again: ${name}`, async () => {
      const { pid, closed, output } = await start(name)
      process.kill(-pid, 'SIGTERM')
      const [code] = await closed
      assert.equal(code, 0, output())
      await until(() => !isAlive(pid), 'the end of the group')
    })
  }
})
