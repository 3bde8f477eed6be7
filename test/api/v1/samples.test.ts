import assert from 'node:assert/strict'
import { SAMPLE } from '../../../workflows/shared/limits.ts'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'
import { startWorker, type TestWorker } from '../../support/worker.ts'

const SPEC = `name: Sampled
inputs: {names: array}
nodes:
  find: {type: set_fields, config: {fields: {name: "{{ inputs.names | first }}", api_token: secret-value}}}
  each: {type: for_each, config: {items: "{{ inputs.names }}"}, next: {item: shout, done: greet}}
  shout: {type: set_fields, config: {fields: {text: "{{ item | upcase }}"}}, next: end}
  greet: {type: set_fields, config: {fields: {text: "Hello {{ nodes.find.output.name }}"}}}
  call: {type: api_request, config: {method: POST, url: "https://example.com/{{ nodes.greet.output.text }}"}}
`

describe('sample outputs', () => {
  const suite = withApi()
  let worker: TestWorker
  let path: string
  let runId: string

  const call = async (method: string, url: string, body?: unknown, status = 200) => {
    const answer = await suite.api.request(method, url, body === undefined ? {} : { body })
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    return answer.body
  }
  const samples = async () => (await call('GET', `${path}/samples`)).data

  before(async () => {
    worker = await startWorker(suite.db, {
      secretsKey: suite.api.secretsKey,
      http: async () => {
        throw new Error('not called')
      },
    })
    const saved = await call('POST', '/v1/workflows', { spec: SPEC }, 201)
    path = `/v1/workflows/${saved.workflow_id}`
    const run = await suite.api.request('POST', `${path}/run`, {
      body: { inputs: { names: ['ada', 'bob'] }, confirm: true },
      headers: { Prefer: 'wait=20' },
    })
    runId = run.body.run_id
  })
  beforeEach(() => suite.db.system('workflow_samples').delete())
  after(() => worker?.stop())

  it('are pinned, replaced, listed with secrets masked, and deleted', async () => {
    const output = {
      name: 'Ada',
      password: 'hunter2',
      note: 'Bearer abcdefghijklmnop1234567890',
      n: [1, { token: 'x' }],
    }
    await call('PUT', `${path}/samples/find`, { output: 'first' })
    const { output: kept, run_id } = await call('PUT', `${path}/samples/find`, { output })
    assert.deepEqual(
      [kept.name, kept.password, kept.n, run_id],
      ['Ada', '[masked]', [1, { token: '[masked]' }], null],
    )
    assert.ok(!JSON.stringify(await suite.db.system('workflow_samples')).match(/hunter2|abcdefghijklmnop/))
    assert.deepEqual(
      (await samples()).map(({ node_id }: { node_id: string }) => node_id),
      ['find'],
    )
    await call('DELETE', `${path}/samples/find`)
    await call('DELETE', `${path}/samples/find`, undefined, 404)
    assert.deepEqual(await samples(), [])
  })

  it('are taken from a run, of a node in a loop from an item', async () => {
    const find = await call('PUT', `${path}/samples/find`, { run_id: runId })
    assert.deepEqual([find.output, find.run_id], [{ name: 'ada', api_token: '[masked]' }, runId])
    const shout = await call('PUT', `${path}/samples/shout`, { run_id: runId, path: 'each:1' })
    assert.deepEqual([shout.output, shout.path], [{ text: 'BOB' }, 'each:1'])
    const { error } = await call('PUT', `${path}/samples/shout`, { run_id: runId }, 409)
    assert.match(error.message, /shout did not start in this run/)
    await call('PUT', `${path}/samples/find`, { run_id: path.split('/').at(-1) }, 404)
  })

  it('are what a test of another node reads, unless it is given others', async () => {
    await call('PUT', `${path}/samples/find`, { output: { name: 'Eve' } })
    const test = (body: object) => call('POST', `${path}/nodes/greet/test`, body)
    const tested = await test({ confirm: true })
    assert.deepEqual([tested.status, tested.output], ['completed', { text: 'Hello Eve' }])
    const given = await test({ inputs: { nodes: { find: { output: { name: 'Bo' } } } }, confirm: true })
    assert.deepEqual(given.output, { text: 'Hello Bo' })
  })

  it('are read by a test of exactly the version that the preview named', async () => {
    const test = (body: object, headers: Record<string, string> = {}) =>
      suite.api.request('POST', `${path}/nodes/greet/test`, { body, headers })
    const previewed = await test({})
    const etag = previewed.headers.get('etag')!
    assert.match(etag, /^"\d+"$/)
    const { definition } = await call('GET', path)
    await call('PATCH', path, { definition: { ...definition, description: 'Changed' } })
    const stale = await test({ confirm: true }, { 'If-Match': etag })
    assert.deepEqual([stale.status, stale.body.error.type], [412, 'version_conflict'])
    const current = (await test({})).headers.get('etag')!
    assert.notEqual(current, etag)
    const done = await test({ confirm: true }, { 'If-Match': current })
    assert.deepEqual([done.status, done.headers.get('etag')], [200, current])
  })

  it('are what a preview reads', async () => {
    const preview = async () => (await call('POST', `${path}/nodes/call/test`, {})).preview
    assert.equal((await preview()).calls, undefined)
    await call('PUT', `${path}/samples/greet`, { output: { text: 'sampled' } })
    assert.match((await preview()).calls[0], /^POST https:\/\/example\.com\/sampled/)
  })

  it('are bounded in size and number', async () => {
    const large = { output: 'x'.repeat(SAMPLE.bytes) }
    assert.equal((await call('PUT', `${path}/samples/find`, large, 413)).error.type, 'payload_too_large')
    const [{ organization_id, id: workflow_id }] = await suite.db
      .system('workflows')
      .where({ name: 'Sampled' })
    await suite.db.system('workflow_samples').insert(
      Array.from({ length: SAMPLE.count }, (_, index) => ({
        organization_id,
        workflow_id,
        node_id: `n${index}`,
        output: '{}',
      })),
    )
    const { error } = await call('PUT', `${path}/samples/find`, { output: 1 }, 409)
    assert.match(error.message, /has 50 samples/)
  })

  it('are refused for what is no node, and without exactly one source', async () => {
    assert.match((await call('PUT', `${path}/samples/fnd`, { output: 1 }, 404)).error.hint, /find/)
    await call('POST', `${path}/nodes/none/test`, {}, 404)
    for (const body of [
      {},
      { output: 1, run_id: runId },
      { output: 1, path: 'each:0' },
      { output: 1, more: 1 },
    ])
      await call('PUT', `${path}/samples/find`, body, 422)
  })

  it('are written by authors only, and not seen by other organizations', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:run'] })
    const options = { key, body: { output: 1 } }
    assert.equal((await suite.api.request('PUT', `${path}/samples/find`, options)).status, 403)
    const other = '019a0000-0000-7000-8000-000000000001'
    await call('GET', `/v1/workflows/${other}/samples`, undefined, 404)
    await call('PUT', `/v1/workflows/${other}/samples/find`, { output: 1 }, 404)
  })
})
