import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { findTemporalCli } from '../../worker/dev/temporal-cli.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const TOKEN = 'the-token-of-the-codec'
const UI = 'https://temporal.example.com'

/** What the pages of Temporal's UI send: its own headers make the browser ask first. */
const PREFLIGHT = {
  origin: UI,
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type,x-namespace',
}

describe('the codec endpoint of a worker', function () {
  this.timeout(120_000)
  let db: TestDatabase
  const processes: TestProcess[] = []
  let worker: TestProcess
  let url: string
  /** A run that has ended. */
  let id: string
  const start = async (env: Record<string, string>) => {
    const one = await startProcess('worker', {
      databaseUrl: db.url,
      env: { TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`, TEMPORAL_UI_URL: `${UI}/some/path`, ...env },
    })
    processes.push(one)
    return one
  }
  before(async () => {
    db = await createTestDatabase()
    worker = await start({ PAYLOAD_KEY: randomBytes(32).toString('base64'), CODEC_TOKEN: TOKEN })
    url = `${worker.url}/codec`
    const organizationId = await createOrganization(db)
    const nodes = [{ id: 'set', type: 'set_fields', config: { fields: { a: 1 } } }]
    id = await queueRun(db, organizationId, { name: 'Secretive onboarding', nodes })
    await untilRun(db, id)
  })
  after(async () => {
    for (const { child } of processes) child.kill('SIGKILL')
    await db?.drop()
  })

  /** What Temporal's CLI shows of the run. */
  const shown = async (...options: string[]): Promise<string> => {
    const { env } = process
    const cli = await findTemporalCli({ path: env.TEMPORAL_CLI_PATH, env, progress: () => {} })
    const show = ['workflow', 'describe', '--workflow-id', `run:${id}`, '--output', 'json']
    const address = ['--address', env.TEST_TEMPORAL_ADDRESS!]
    return (await promisify(execFile)(cli, [...show, ...address, ...options])).stdout
  }
  const ask = (init: RequestInit, verb = 'decode', of = url) =>
    fetch(`${of}/${verb}`, { method: 'POST', body: '{"payloads": []}', ...init })

  it('shows the CLI of Temporal what is encrypted, and only with its token', async () => {
    assert.doesNotMatch(await shown(), /Secretive/)
    assert.match(
      await shown('--codec-endpoint', url, '--codec-auth', `Bearer ${TOKEN}`),
      /Secretive onboarding/,
    )
    for (const authorization of ['', 'Bearer other', TOKEN])
      assert.equal((await ask({ headers: { authorization } })).status, 401)
  })

  it('encrypts and decrypts', async () => {
    const authorized = { headers: { authorization: `Bearer ${TOKEN}` } }
    const payload = { metadata: { encoding: btoa('json/plain') }, data: btoa('"Grace"') }
    const body = JSON.stringify({ payloads: [payload] })
    const encoded = (await (await ask({ ...authorized, body }, 'encode')).json()) as { payloads: object[] }
    assert.ok(!JSON.stringify(encoded).includes(payload.data))
    const decoded = await ask({ ...authorized, body: JSON.stringify(encoded) })
    assert.deepEqual(await decoded.json(), { payloads: [payload] })
  })

  it('is open to the pages of the UI, with a token or credentials, and to no other page', async () => {
    const preflight = await ask({ method: 'OPTIONS', body: null, headers: PREFLIGHT })
    const allowed = (name: string) => preflight.headers.get(`access-control-allow-${name}`)
    assert.deepEqual([preflight.status, allowed('origin'), allowed('credentials')], [204, UI, 'true'])
    for (const name of ['authorization', 'content-type', 'x-namespace'])
      assert.ok(allowed('headers')!.toLowerCase().split(', ').includes(name), name)
    const authorization = `Bearer ${TOKEN}`
    const page = await ask({ headers: { origin: UI, authorization, 'x-namespace': 'default' } })
    assert.deepEqual([page.status, page.headers.get('access-control-allow-origin')], [200, UI])
    // The page reads why it was refused.
    const refused = await ask({ headers: { origin: UI } })
    assert.deepEqual([refused.status, refused.headers.get('access-control-allow-origin')], [401, UI])
    for (const origin of ['https://evil.example', `${UI}.evil.example`, 'null'])
      for (const init of [
        { headers: { origin, authorization } },
        { method: 'OPTIONS', body: null, headers: { ...PREFLIGHT, origin } },
      ])
        assert.equal((await ask(init)).headers.get('access-control-allow-origin'), null, origin)
  })

  it('is not there without PAYLOAD_KEY; without CODEC_TOKEN it answers direct requests of this machine', async () => {
    const [plain, local] = await Promise.all([
      start({}),
      start({ PAYLOAD_KEY: randomBytes(32).toString('base64') }),
    ])
    assert.equal((await ask({}, 'decode', `${plain.url}/codec`)).status, 404)
    const status = async (headers: Record<string, string>) =>
      (await ask({ headers }, 'decode', `${local.url}/codec`)).status
    assert.deepEqual([await status({}), await status({ 'x-forwarded-for': '192.0.2.1' })], [200, 401])
  })
})
