import assert from 'node:assert/strict'
import { CHAIN_START, createRun } from '../../../db/runs/runs.ts'
import { createWorkflow } from '../../../db/workflows/workflows.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization, testActor } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'
import { emptyVersion } from '../../support/workflows.ts'

/** Without a worker: what the API itself does. */
describe('changes of runs', () => {
  const suite = withApi()
  let workflowId: string
  let runs: string[]

  beforeEach(async () => {
    const { db, api } = suite
    await db.system('runs').delete()
    await db.tenant(api.organizationId, testActor, async (tx) => {
      const content = emptyVersion({ type: 'manual' })
      workflowId = (await createWorkflow(tx, { name: 'Monthly report', description: null, ...content })).id
      const workflow = { id: workflowId, version: 1, name: 'Monthly report' }
      runs = []
      for (const type of ['api', 'schedule', 'api'] as const)
        runs.push(await createRun(tx, { workflow, trigger: { type }, inputs: {}, chain: CHAIN_START }))
    })
  })

  const end = (id: string, status: string, message = 'Nobody there.') =>
    suite.db
      .system('runs')
      .where({ id })
      .update({
        status,
        ended_at: new Date(),
        error: { code: 'connection_refused', message },
      })
  const call = async (method: string, path: string, body?: unknown, status = 200) => {
    const answer = await suite.api.request(method, path, body === undefined ? {} : { body })
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    return answer.body
  }
  const list = async (query: string) =>
    (await call('GET', `/v1/runs?order=asc&${query}`)).data.map(({ run_id }: { run_id: string }) =>
      runs.indexOf(run_id),
    )

  it('are found by several statuses, trigger, time and text', async () => {
    await end(runs[0]!, 'failed', 'The mail server said 100% no.')
    await end(runs[1]!, 'terminated')
    assert.deepEqual(await list('status=failed,terminated'), [0, 1])
    assert.deepEqual(await list('status=terminated'), [1])
    assert.deepEqual(await list('trigger=schedule'), [1])
    assert.deepEqual(await list('q=MAIL%20server'), [0])
    assert.deepEqual(await list('q=100%25%20no'), [0])
    assert.deepEqual(await list('q=monthly'), [0, 1, 2])
    assert.deepEqual(await list('q=yearly'), [])
    const now = Date.now()
    const at = (ms: number) => encodeURIComponent(new Date(now + ms).toISOString())
    assert.deepEqual(await list(`from=${at(-60_000)}&to=${at(60_000)}`), [0, 1, 2])
    assert.deepEqual(await list(`from=${at(60_000)}`), [])
    assert.deepEqual(await list(`to=${at(-60_000)}`), [])
    assert.deepEqual(await list(`parent_run_id=${runs[0]}`), [])
    for (const wrong of ['status=failed,broken', 'q=ab', 'trigger=magic', 'from=yesterday'])
      await call('GET', `/v1/runs?${wrong}`, undefined, 422)
  })

  it('pause and resume a queued run; not one that has ended', async () => {
    const path = `/v1/runs/${runs[0]}`
    const paused = await call('POST', `${path}/pause`)
    assert.equal(paused.status, 'paused')
    assert.ok(paused.pause_requested_at)
    assert.equal((await call('POST', `${path}/pause`)).status, 'paused')
    const resumed = await call('POST', `${path}/resume`)
    assert.deepEqual([resumed.status, resumed.pause_requested_at], ['queued', null])
    assert.equal((await call('POST', `${path}/resume`)).status, 'queued')
    assert.equal((await call('POST', `${path}/terminate`)).status, 'terminated')
    assert.equal((await call('POST', `${path}/terminate`)).status, 'terminated')
    for (const verb of ['pause', 'resume']) await call('POST', `${path}/${verb}`, undefined, 409)
  })

  it('retry a run after its preview', async () => {
    const path = `/v1/runs/${runs[0]}/retry`
    assert.match((await call('POST', path, {}, 409)).error.message, /only a run that has ended/)
    await end(runs[0]!, 'failed')
    const preview = await suite.api.request('POST', path, { body: {} })
    assert.equal(preview.headers.get('etag'), '"1"')
    assert.deepEqual(preview.body.preview.nodes[0].id, 'stop')
    assert.deepEqual(await list(`retry_of=${runs[0]}`), [])
    const other = await suite.api.request('POST', path, {
      body: { confirm: true },
      headers: { 'If-Match': '"2"' },
    })
    assert.equal(other.status, 412)
    const { run_id } = await call('POST', path, { confirm: true })
    const retry = await call('GET', `/v1/runs/${run_id}`)
    assert.deepEqual([retry.retry_of, retry.retry], [runs[0], { run_id: runs[0], from_node: null }])
    await call('POST', path, { from_node: 'stop', from_start: true }, 422)
    assert.equal((await call('POST', path, { from_node: 'nothing' }, 409)).error.param, 'from_node')
    await call('POST', path, { version: 'oldest' }, 422)
  })

  it('of another organization are not found', async () => {
    const other = await createKey(suite.db, await createOrganization(suite.db))
    for (const verb of ['cancel', 'pause', 'resume', 'terminate', 'retry']) {
      const answer = await suite.api.request('POST', `/v1/runs/${runs[0]}/${verb}`, {
        ...(verb === 'retry' ? { body: { confirm: true } } : {}),
        key: other.key,
      })
      assert.equal(answer.status, 404, verb)
    }
  })

  it('are made in batches, after a preview with their number', async () => {
    await end(runs[0]!, 'failed')
    await end(runs[1]!, 'completed')
    const wanted = { action: 'retry', filter: { workflow_id: workflowId } }
    const { preview } = await call('POST', '/v1/run-batches', wanted, 200)
    assert.deepEqual(preview, { action: 'retry', count: 1, run_ids: [runs[0]] })
    assert.deepEqual(await suite.db.system('run_batches'), [])
    const batch = await call('POST', '/v1/run-batches', { ...wanted, confirm: true }, 201)
    assert.deepEqual([batch.status, batch.total, batch.pending], ['running', 1, 1])
    assert.deepEqual(await call('GET', `/v1/run-batches/${batch.batch_id}`), batch)
    const refused = await call(
      'POST',
      '/v1/run-batches',
      { action: 'cancel', filter: { status: ['failed'] } },
      422,
    )
    assert.match(refused.error.message, /cancel applies to runs that are queued, running, paused/)
    await call('POST', '/v1/run-batches', { action: 'retry', filter: { colour: 'red' } }, 422)
    await call('GET', `/v1/run-batches/${workflowId}`, undefined, 404)
  })
})
