import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { ConfigError } from '../../../db/model/config-error.ts'
import { processIdentity } from '../../../worker/dev/postgres/process.ts'
import { freePort } from '../../../worker/dev/postgres/server.ts'
import { prepare } from '../../../worker/dev/prepare.ts'
import { type ProcessName, spawnSupervisor, startStack, type TestStack } from '../../support/stack.ts'
import { until } from '../../support/until.ts'

const PARTS: ProcessName[] = ['supervisor', 'api', 'worker', 'temporal', 'postgres']

describe('npm start', () => {
  let stack: TestStack
  let pids: number[]
  let contact: string

  const remember = () => {
    pids = PARTS.map((name) => stack.pid(name))
  }
  const allGone = () => assert.deepEqual(pids.map(processIdentity).filter(Boolean), [], 'processes are left')

  before(async () => {
    stack = await startStack()
    remember()
  })
  after(() => stack?.stop())

  it('prints a curl line that works when pasted', () => {
    const line = /curl .*/.exec(stack.output())![0]
    const me = JSON.parse(execFileSync('/bin/sh', ['-c', `${line} --silent --fail`], { encoding: 'utf8' }))
    assert.equal(me.organization.name, 'Demo')
  })

  it('prints where the API reference and the Temporal UI are', async () => {
    for (const url of stack.output().match(/http:\S+(?=\n)/g)!) {
      const response = await fetch(url, { headers: { authorization: `Bearer ${stack.key}` } })
      assert.ok(response.status < 500, `${url} answers ${response.status}`)
    }
    assert.match(stack.output(), new RegExp(`Temporal UI +${stack.temporalUiUrl}`))
  })

  it('shows an owner who can sign in', async () => {
    const response = await post('/app/session', stack.owner)
    assert.equal(response.status, 201)
  })

  it('keeps its files to their owner', () => {
    const modeOf = (path: string) => (statSync(join(stack.dataDir, path)).mode & 0o777).toString(8)
    // As root, PostgreSQL runs as another user, whose group needs to traverse the folder.
    assert.equal(modeOf('.'), process.getuid?.() === 0 ? '710' : '700')
    assert.equal(modeOf('logs'), '700')
    const files = ['postgres.json', 'processes.json', 'secrets.key', 'temporal.db']
    const logs = ['api', 'worker', 'temporal', 'postgres'].map((name) => `logs/${name}.log`)
    for (const file of [...files, ...logs]) assert.equal(modeOf(file), '600', file)
  })

  it('listens on the loopback only', function () {
    if (process.platform !== 'linux') this.skip()
    for (const name of ['api', 'worker', 'temporal', 'postgres'] as const) {
      const addresses = listeningAddresses(stack.pid(name))
      assert.ok(addresses.length > 0, name)
      for (const address of addresses) assert.match(address, /^(127\.|::1$|::ffff:127\.)/, name)
    }
  })

  it('runs api and worker with plain database logins', async () => {
    const client = new pg.Client({ connectionString: stack.databaseUrl })
    await client.connect()
    const { rows } = await client.query(
      "select distinct usename from pg_stat_activity where application_name like 'agx %' order by 1",
    )
    await client.end()
    assert.deepEqual(
      rows.map(({ usename }) => usename),
      ['agx_app', 'agx_system'],
    )
  })

  it('refuses a second start on the same data folder', async () => {
    const second = spawnSupervisor({ DATA_DIR: stack.dataDir })
    assert.equal(await second.exited, 1)
    assert.match(second.output(), /^DATA_DIR is in use by another agx \(process \d+\)/)
  })

  it('restarts a killed part', async () => {
    for (const name of ['api', 'worker', 'temporal', 'postgres'] as const) stack.kill(name)
    await until(async () => {
      for (const url of [stack.apiUrl, stack.workerUrl]) assert.ok((await fetch(`${url}/readyz`)).ok)
      for (const name of PARTS) assert.ok(processIdentity(stack.pid(name)), `${name} does not run`)
      return true
    })
    remember()
  })

  it('replaces a Temporal that hangs, and its runs go on', async () => {
    const spec = 'name: Pauses\nnodes:\n  pause: {type: delay, config: {for: 2s}}\n'
    const saved = await post('/v1/workflows', { spec })
    const { workflow_id } = (await saved.json()) as { workflow_id: string }
    const started = await post(`/v1/workflows/${workflow_id}/run`, { confirm: true })
    const { run_id } = (await started.json()) as { run_id: string }
    const statusOf = async () =>
      ((await (await get(`/v1/runs/${run_id}`)).json()) as { status: string }).status
    await until(async () => (await statusOf()) === 'running')
    const stopped = stack.pid('temporal')
    stack.kill('temporal', 'SIGSTOP')
    await until(() => stack.pid('temporal') !== stopped)
    assert.match(
      stack.output(),
      /temporal runs, but every call has failed for \d+ s .*temporal ended \(SIGKILL\)/s,
    )
    await until(async () => (await statusOf()) === 'completed')
    remember()
  })

  it('stops every process on Ctrl-C', async () => {
    const made = await post('/v1/objects/contacts', { email: 'kept@example.com' })
    contact = ((await made.json()) as { id: string }).id
    assert.equal(await stack.stop('SIGINT'), 0)
    allGone()
  })

  it('keeps all data and shows no secret at the second start', async () => {
    stack = await startStack({ previous: stack })
    assert.doesNotMatch(stack.output(), /agx_|password/)
    assert.equal((await get(`/v1/objects/contacts/${contact}`)).status, 200)
    remember()
  })

  it('takes over the processes that kill -9 of the supervisor left running', async () => {
    stack.kill('supervisor')
    await stack.exited
    assert.equal(pids.map(processIdentity).filter(Boolean).length, PARTS.length - 1)
    stack = await startStack({ previous: stack })
    assert.match(stack.output(), /ended processes of a killed start: .*PostgreSQL was still running/s)
    assert.equal((await get(`/v1/objects/contacts/${contact}`)).status, 200)
    assert.equal(stack.pid('postgres'), pids[PARTS.indexOf('postgres')])
    for (const name of ['api', 'worker', 'temporal'] as const)
      assert.equal(processIdentity(pids[PARTS.indexOf(name)]!), undefined, `the old ${name} is left`)
    remember()
  })

  it('stops every process on SIGTERM, and answers the requests that wait for a run', async () => {
    const spec = 'name: Sleeps\nnodes:\n  pause: {type: delay, config: {for: 1h}}\n'
    const saved = await post('/v1/workflows', { spec })
    const { workflow_id } = (await saved.json()) as { workflow_id: string }
    const run = () => post(`/v1/workflows/${workflow_id}/run`, { confirm: true }, { prefer: 'wait=30' })
    const waiting = Promise.all(Array.from({ length: 10 }, run))
    await until(async () => (await listed(`/v1/runs?workflow_id=${workflow_id}`)).length === 10)
    assert.equal(await stack.stop('SIGTERM'), 0)
    for (const response of await waiting) assert.equal(response.status, 200)
    allGone()
  })

  const listed = async (path: string) => ((await (await get(path)).json()) as { data: unknown[] }).data

  const get = (path: string) =>
    fetch(stack.apiUrl + path, { headers: { authorization: `Bearer ${stack.key}` } })

  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(stack.apiUrl + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...headers,
        ...(path.startsWith('/v1') && { authorization: `Bearer ${stack.key}` }),
      },
      body: JSON.stringify(body),
    })
})

describe('npm start reports an invalid setting in one line', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'agx-refused-'))
  after(() => rmSync(dataDir, { recursive: true }))

  it('on its standard error, and exits with 1', async () => {
    const supervisor = spawnSupervisor({ DATA_DIR: dataDir, DATABASE_URL: 'mysql://x' })
    assert.equal(await supervisor.exited, 1)
    assert.match(supervisor.output(), /^DATABASE_URL must look like postgres:.*\n$/)
  })

  /** The checks of `npm start`, run in this process: starting another one takes two seconds of CPU. */
  const refused = async (settings: Record<string, string>, line: RegExp) => {
    const env = { DATA_DIR: mkdtempSync(join(dataDir, 'data-')), ...settings }
    await assert.rejects(prepare(env, new AbortController().signal), (error) => {
      assert.ok(error instanceof ConfigError, `${error}`)
      assert.match(error.message, line)
      assert.doesNotMatch(error.message, /\n/)
      return true
    })
  }

  for (const setting of ['PORT', 'WORKER_PORT', 'TEMPORAL_PORT', 'TEMPORAL_UI_PORT'])
    it(`a ${setting} in use`, async () => {
      const taken = await listening()
      await refused(
        { ...(await otherPorts()), [setting]: String(port(taken)) },
        new RegExp(`^${setting} \\d+ is in use`),
      )
      taken.close()
    })

  it('an address of another machine', async () =>
    refused(
      { ...(await otherPorts()), HOST: 'nowhere.invalid' },
      /^HOST nowhere.invalid cannot be bound \(ENOTFOUND\)/,
    ))

  it('a data folder that is not writable', () =>
    refused({ DATA_DIR: '/dev/null/agx' }, /^DATA_DIR \/dev\/null\/agx is not writable \(ENOTDIR\)/))

  it('a database that does not answer', async () =>
    refused(
      { ...(await otherPorts()), DATABASE_URL: 'postgres://agx:secret-word@127.0.0.1:1/agx' },
      /^DATABASE_URL cannot be used: connect ECONNREFUSED(?!.*secret-word)/,
    ))

  it('a database that does not exist', async () => {
    const url = new URL(process.env.TEST_DATABASE_URL!)
    url.pathname = '/nowhere'
    await refused(
      { ...(await otherPorts()), DATABASE_URL: url.href },
      /^DATABASE_URL cannot be used: database "nowhere" does not exist/,
    )
  })

  it('a Temporal that cannot be reached', async () =>
    refused(
      { ...(await otherPorts()), TEMPORAL_ADDRESS: '127.0.0.1:1' },
      /^TEMPORAL_ADDRESS 127.0.0.1:1 cannot be reached .*: start it, correct TEMPORAL_ADDRESS, or unset it/,
    ))

  it('a namespace that does not exist on the Temporal server', async () =>
    refused(
      {
        ...(await otherPorts()),
        TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS!,
        TEMPORAL_NAMESPACE: 'nowhere',
      },
      /^TEMPORAL_NAMESPACE nowhere does not exist at/,
    ))

  it('a Temporal CLI that does not exist', async () =>
    refused(
      { ...(await otherPorts()), TEMPORAL_CLI_PATH: '/nowhere/temporal' },
      /^TEMPORAL_CLI_PATH \/nowhere\/temporal does not exist/,
    ))

  it('production without DATABASE_URL', () =>
    refused(
      { NODE_ENV: 'production', SECRETS_KEY: Buffer.alloc(32).toString('base64') },
      /^DATABASE_URL is missing: .* in production/,
    ))
})

async function listening(): Promise<Server> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const port = (server: Server) => (server.address() as { port: number }).port

async function otherPorts() {
  const [api, worker, temporal, ui] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  return {
    PORT: String(api),
    WORKER_PORT: String(worker),
    TEMPORAL_PORT: String(temporal),
    TEMPORAL_UI_PORT: String(ui),
  }
}

/** The local addresses on which a process listens (Linux). */
function listeningAddresses(pid: number): string[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    }),
  )
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      // State 0A is LISTEN; field 9 is the inode.
      .filter((fields) => fields[3] === '0A' && sockets.has(fields[9]!))
      .map((fields) => addressOf(fields[1]!.split(':')[0]!)),
  )
}

/** From 32-bit words in native byte order (little endian). */
function addressOf(hex: string): string {
  const bytes = hex.match(/.{8}/g)!.flatMap((word) => [...Buffer.from(word, 'hex')].reverse())
  const v4 = bytes.slice(-4).join('.')
  if (bytes.length === 4) return v4
  if (bytes.every((byte, i) => byte === (i === 15 ? 1 : 0))) return '::1'
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  return mapped ? `::ffff:${v4}` : Buffer.from(bytes).toString('hex')
}
