import { deepEqual, equal, match } from 'node:assert/strict'
import { setPools } from '../../../db/access/pools.ts'
import { createKey } from '../../support/api.ts'
import { httpResponse } from '../../support/http-response.ts'
import { until } from '../../support/until.ts'
import { withApiAndWorker } from '../../support/with-api.ts'
import { startPoolWorker, type TestWorker } from '../../support/worker.ts'

describe('worker pools in the API', () => {
  const suite = withApiAndWorker()
  const started: Pick<TestWorker, 'stop'>[] = []
  after(() => Promise.all(started.map((worker) => worker.stop())))

  const allow = (...pools: string[]) => setPools(suite.db.system, suite.api.organizationId, pools)
  const post = (path: string, body: object) => suite.api.request('POST', `/v1/workflows${path}`, { body })
  const spec = (pool: string, settings = 'default') =>
    [
      'name: Pools',
      `settings: {pool: ${settings}}`,
      'nodes:',
      '  a:',
      '    type: api_request',
      '    config: {url: "https://x.test"}',
      '    on_error: end',
      `    pool: ${pool}`,
      '',
    ].join('\n')

  it('reports a pool that the organization may not use, with its place and the nearest name', async () => {
    await allow('dmz', 'lab')
    const { body } = await post('/validate', { spec: spec('dmzz', 'other') })
    equal(body.valid, false)
    deepEqual(body.errors, [
      {
        code: 'unknown_pool',
        message: 'the organization has no worker pool other',
        hint: 'one of dmz, lab, or default',
        path: '/settings/pool',
        line: 2,
        column: 18,
      },
      {
        code: 'unknown_pool',
        message: 'the organization has no worker pool dmzz',
        hint: 'did you mean dmz?',
        path: '/nodes/a/pool',
        node_id: 'a',
        line: 8,
        column: 11,
      },
    ])
    deepEqual((await post('/validate', { spec: spec('dmz', 'lab') })).body.errors, [])
    deepEqual((await post('/validate', { spec: spec('default') })).body.errors, [])
    await allow()
    const [none] = (await post('/validate', { spec: spec('dmz') })).body.errors
    match(none.hint, /^remove it, or ask the operator/)
  })

  it('refuses to save a workflow with such a pool', async () => {
    await allow('dmz')
    const refused = await post('', { spec: spec('lab') })
    deepEqual([refused.status, refused.body.error.type], [400, 'workflow_invalid'])
    equal(refused.body.error.validation.errors[0].code, 'unknown_pool')
    const saved = await post('', { spec: spec('dmz') })
    equal(saved.status, 201)
    const path = `/v1/workflows/${saved.body.workflow_id}`
    const changed = await suite.api.request('PATCH', path, { body: { spec: spec('lab') } })
    deepEqual([changed.status, changed.body.error.type], [400, 'workflow_invalid'])
    const { body } = await suite.api.request('GET', path)
    deepEqual([body.version, body.definition.nodes[0].pool], [1, 'dmz'])
  })

  it('reports a pool of a node without calls, and a name that no pool can have', async () => {
    const wait = 'name: Wait\nnodes: {a: {type: delay, config: {for: 1s}, pool: dmz}}\n'
    const { errors, warnings } = (await post('/validate', { spec: wait })).body
    deepEqual([errors, warnings[0].code, warnings[0].path], [[], 'not_applicable', '/nodes/a/pool'])
    const [wrong] = (await post('/validate', { spec: spec('DMZ 1') })).body.errors
    deepEqual([wrong.code, wrong.path], ['schema', '/nodes/a/pool'])
    match(wrong.message, /lower case letters, digits and hyphens/)
  })

  describe('the test of a node', () => {
    const config = { url: 'https://x.test' }
    const test = (more: object) => post('/nodes/test', { node_type: 'api_request', config, ...more })

    it('is refused while no worker of the pool runs, and its preview says so', async () => {
      await allow('dmz')
      const preview = await test({ pool: 'dmz' })
      match(preview.body.preview.warnings.join('\n'), /no worker of the pool dmz runs/)
      const { status, body } = await test({ pool: 'dmz', confirm: true })
      deepEqual([status, body.error.type], [503, 'unavailable'])
      match(`${body.error.message}: ${body.error.hint}`, /no worker of the pool dmz .*WORKER_POOL=dmz/)
    })

    it('is made by a worker of the pool', async () => {
      await allow('dmz')
      const { secretsKey } = suite.api
      const http = (async () => httpResponse({ body: { from: 'dmz' } })) as never
      started.push(await startPoolWorker(suite.db, suite.worker.taskQueue, { pool: 'dmz', http, secretsKey }))
      await until(async () => (await suite.db.system('pool_workers')).length > 0)
      const { body } = await test({ pool: 'dmz', confirm: true })
      deepEqual([body.status, body.output?.body], ['completed', { from: 'dmz' }], JSON.stringify(body))
      const saved = await post('', { spec: spec('default', 'lab') })
      equal(saved.status, 400)
      const { workflow_id } = (await post('', { spec: spec('dmz') })).body
      const ofNode = await post(`/${workflow_id}/nodes/a/test`, { confirm: true })
      deepEqual(ofNode.body.output?.body, { from: 'dmz' }, JSON.stringify(ofNode.body))
    })

    it('fails if the organization may not use the pool', async () => {
      await allow('lab')
      match((await test({ pool: 'dmz' })).body.preview.warnings.join('\n'), /has no worker pool dmz/)
      const { body } = await test({ pool: 'dmz', confirm: true })
      deepEqual([body.status, body.error?.code], ['failed', 'unknown_pool'])
    })

    it('needs workflows:author: its request of choice would be sent into another network', async () => {
      const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:run'] })
      const body = { node_type: 'api_request', config, pool: 'dmz' }
      const { status } = await suite.api.request('POST', '/v1/workflows/nodes/test', { key, body })
      equal(status, 403)
    })

    it('refuses a pool for a node without calls', async () => {
      const body = { node_type: 'delay', config: { for: '1s' }, pool: 'dmz' }
      const answer = await post('/nodes/test', body)
      deepEqual([answer.status, answer.body.detail[0].loc], [422, ['body', 'pool']])
    })
  })
})
