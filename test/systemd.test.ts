import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { readConfig as readApiConfig } from '../api/config.ts'
import { SECRET_VARIABLES } from '../db/process/secret-files.ts'
import { startVariables } from '../worker/dev/config.ts'
import { SHARED_DATA } from './support/bundle.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { temporaryFolder } from './support/folder.ts'
import { quietPort } from './support/quiet-port.ts'
import { until } from './support/until.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const UNITS = join(ROOT, 'deploy/systemd')
const API = 'agx-api@.service'
const WORKER = 'agx-worker@.service'
const MIGRATE = 'agx-migrate.service'

/** The values of each key of a unit, with those of the drop-in that systemd adds to all units of agx. */
function readUnit(name: string): Map<string, string[]> {
  const text = ['agx-.service.d/common.conf', name].map((file) => readFileSync(join(UNITS, file), 'utf8'))
  const values = new Map<string, string[]>()
  for (const [, key, value] of text.join('\n').matchAll(/^(\w+)=(.*)$/gm))
    values.set(key!, [...(values.get(key!) ?? []), value!])
  return values
}

const assignmentsOf = (lines: string[]): [name: string, value: string][] =>
  lines
    .flatMap((line) => line.split(' '))
    .map((assignment) => {
      const at = assignment.indexOf('=')
      return [assignment.slice(0, at), assignment.slice(at + 1)]
    })
const settingsOf = (unit: Map<string, string[]>) => assignmentsOf(unit.get('Environment') ?? [])
const exampleSettings = () =>
  assignmentsOf(
    readFileSync(join(UNITS, 'agx.env'), 'utf8')
      .split('\n')
      .filter((line) => /^\w/.test(line)),
  )

describe('the units of systemd', () => {
  it('are known to systemd as they are', function () {
    if (spawnSync('systemd-analyze', ['--version']).status !== 0) {
      process.stdout.write('      skipped: systemd-analyze is not installed (apt-get install systemd)\n')
      return this.skip()
    }
    // The empty path at the end stands for those of the system, on which the units depend.
    const verify = (cwd: string, ...names: string[]) =>
      spawnSync('systemd-analyze', ['verify', '--man=no', ...names], {
        cwd,
        env: { ...process.env, SYSTEMD_UNIT_PATH: `${cwd}:` },
        encoding: 'utf8',
      })
        .stderr.split('\n')
        // Node and curl may be elsewhere on this machine.
        .filter((line) => line.includes('agx-') && !line.includes('is not executable'))
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'agx-wrong.service'), '[Service]\nExecStart=/bin/true\nNonsense=yes\n')
    assert.match(verify(folder, 'agx-wrong.service').join(), /Nonsense/)
    const names = [API, WORKER, MIGRATE].map((name) => name.replace('@.', '@8080.'))
    assert.deepEqual(verify(UNITS, ...names), [])
  })

  it('give only settings that exist, and secrets as files that systemd hands over', () => {
    const units = [API, WORKER, MIGRATE].map((name) => [name, readUnit(name)] as const)
    for (const [name, unit] of units) {
      const loaded = (unit.get('LoadCredential') ?? []).map((line) => line.split(':')[0])
      for (const [setting, value] of settingsOf(unit)) {
        const secret = SECRET_VARIABLES.find((one) => setting === `${one}_FILE`)
        if (secret) assert.ok(loaded.includes(value.replace('%d/', '')), `${name}: ${setting}`)
        else
          assert.ok(
            ['TZ', 'MALLOC_ARENA_MAX'].includes(setting) || Object.hasOwn(startVariables.shape, setting),
            `${name}: ${setting}`,
          )
      }
      assert.equal(loaded.includes('database-owner-url'), name === MIGRATE, name)
    }
    for (const [setting] of exampleSettings()) {
      assert.ok(Object.hasOwn(startVariables.shape, setting), setting)
      assert.ok(!SECRET_VARIABLES.includes(setting), setting)
    }
  })

  it('wait for the end of a process as long as it may take, and try a start again for ever', () => {
    const { SHUTDOWN_DELAY, SHUTDOWN_GRACE } = readApiConfig({ DATABASE_URL: 'postgres://a@b/c' })
    for (const name of [API, WORKER]) {
      const unit = readUnit(name)
      assert.deepEqual(unit.get('TimeoutStopSec'), [String(SHUTDOWN_DELAY + SHUTDOWN_GRACE + 10)], name)
      assert.deepEqual([unit.get('Restart'), unit.get('StartLimitIntervalSec')], [['always'], ['0']], name)
    }
  })

  it('are all in the folder', () => {
    assert.deepEqual(readdirSync(UNITS).sort(), ['agx-.service.d', 'agx.env', API, MIGRATE, WORKER].sort())
  })
})

describe('processes as the units of systemd start them', () => {
  const id = randomBytes(4).toString('hex')
  const folder = temporaryFolder()
  const children: ChildProcess[] = []
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
    const login = (role: string) => {
      const url = new URL(db.url)
      return Object.assign(url, { username: `${role}_${id}`, password: randomBytes(12).toString('hex') }).href
    }
    for (const [name, secret] of Object.entries({
      'database-url': login('app'),
      'database-system-url': login('system'),
      'database-owner-url': db.url,
      'secrets-key': randomBytes(32).toString('base64'),
    }))
      writeFileSync(join(folder, name), `${secret}\n`)
  })
  after(async () => {
    for (const child of children) child.kill('SIGKILL')
    await db?.drop()
    const client = new pg.Client({ connectionString: process.env.TEST_DATABASE_URL })
    await client.connect()
    await client.query(`drop role if exists app_${id}, system_${id}`)
    await client.end()
  })

  /** Starts the command of a unit with its settings only, and those of the operator. */
  function start(name: string, port = 0) {
    const unit = readUnit(name)
    const filled = (value: string) =>
      value.replaceAll('%S/agx', SHARED_DATA).replaceAll('%d', folder).replaceAll('%i', String(port))
    const [node, ...args] = unit.get('ExecStart')![0]!.split(' ')
    assert.equal(node, '/usr/bin/node')
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...Object.fromEntries(settingsOf(unit).map(([setting, value]) => [setting, filled(value)])),
        TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS,
        TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
      },
    })
    children.push(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const probe = unit.get('ExecStartPost')?.[0]?.split(' ').at(-1)
    return { child, output: () => output, probe: probe && filled(probe), ended: once(child, 'exit') }
  }

  it('migrate, serve and end with the signal', async () => {
    const migrated = start(MIGRATE)
    assert.deepEqual(await migrated.ended, [0, null], migrated.output())
    for (const name of [API, WORKER]) {
      const { child, output, probe, ended } = start(name, await quietPort())
      await until(async () => {
        assert.equal(child.exitCode, null, output())
        return (await fetch(probe!).catch(() => undefined))?.status === 200 || undefined
      }, probe!)
      const readyz = probe!.replace('healthz', 'readyz')
      await until(async () => (await fetch(readyz)).status === 200 || undefined, readyz)
      child.kill('SIGTERM')
      assert.deepEqual(await ended, [0, null], output())
    }
  })
})
