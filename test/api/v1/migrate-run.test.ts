import assert from 'node:assert/strict'
import { ENGINE } from '../../../workflows/nodes/engine.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

/** Without a worker: runs stay queued. `test/worker/migrate.test.ts` has those in progress. */
describe('the migration of a run', () => {
  const suite = withApi()
  let workflowId: string
  let runId: string

  const call = async (method: string, path: string, body?: unknown, status = 200, headers = {}) => {
    const answer = await suite.api.request(method, path, { headers, ...(body === undefined ? {} : { body }) })
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    return answer
  }
  const spec = (text: string, inputs = '{}') =>
    `name: Greet\ninputs: ${inputs}\nnodes: {greet: {type: set_fields, config: {fields: {text: ${text}}}}}`
  const migrate = (body: unknown, status = 200, headers = {}) =>
    call('POST', `/v1/runs/${runId}/migrate`, body, status, headers)
  const save = (text: string, inputs?: string) =>
    call('PATCH', `/v1/workflows/${workflowId}`, { spec: spec(text, inputs) })
  const start = async () =>
    (await call('POST', `/v1/workflows/${workflowId}/run`, { confirm: true })).body.run_id

  beforeEach(async () => {
    workflowId = (await call('POST', '/v1/workflows', { spec: spec('Hello') }, 201)).body.workflow_id
    runId = await start()
    await save('Hi')
  })

  it('shows the versions, the time and the caller in the run, and has the new version as ETag', async () => {
    const answer = await migrate({ version: 'latest' })
    assert.equal(answer.headers.get('etag'), '"2"')
    const { workflow_version, migrations } = answer.body
    assert.equal(workflow_version, 2)
    assert.equal(migrations.length, 1)
    const [{ at, by, ...versions }] = migrations
    assert.deepEqual(versions, { from_version: 1, to_version: 2 })
    assert.equal(by.type, 'key')
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000)
    const back = await migrate({ version: 1 })
    assert.deepEqual(
      back.body.migrations.map(({ to_version }: { to_version: number }) => to_version),
      [2, 1],
    )
    assert.deepEqual((await call('GET', `/v1/runs/${runId}`)).body.migrations, back.body.migrations)
  })

  it('happens once with an Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'once' }
    const first = await migrate({ version: 2 }, 200, headers)
    assert.deepEqual((await migrate({ version: 2 }, 200, headers)).body, first.body)
    await migrate({ version: 2 }, 409)
  })

  it('refuses a version that is none of the workflow, the same one, or not the expected one', async () => {
    for (const version of [3, 2_147_483_648]) {
      const { error, detail } = (await migrate({ version }, 422)).body
      assert.match(error.message, /version: the workflow has no version \d+/)
      assert.equal(error.hint, 'it has the versions 1 to 2')
      assert.deepEqual(detail[0].loc, ['body', 'version'])
    }
    for (const version of [0, -1, 1.5, '2', 'newest', null, undefined]) await migrate({ version }, 422)
    const { message } = (await migrate({ version: 'newest' }, 422)).body.error
    assert.equal(message, 'version: must be the number of a version, or latest')
    await migrate({ version: 2, force: true }, 422)
    const same = (await migrate({ version: 1 }, 409)).body.error
    assert.deepEqual([same.type, same.param], ['conflict', 'version'])
    await migrate({ version: 'latest' }, 412, { 'If-Match': '"1"' })
    await migrate({ version: 'latest' }, 200, { 'If-Match': '"2"' })
  })

  it('refuses a run that has ended, and one whose workflow was deleted', async () => {
    const other = await start()
    await call('POST', `/v1/runs/${runId}/cancel`)
    const { error } = (await migrate({ version: 2 }, 409)).body
    assert.match(error.message, /the run is cancelled: only an open run/)
    assert.match(error.hint, /retry/)
    await call('DELETE', `/v1/workflows/${workflowId}`)
    runId = other
    assert.match((await migrate({ version: 2 }, 409)).body.error.message, /workflow of the run was deleted/)
  })

  it('is not found for a node test, and for another organization', async () => {
    const { run_id } = await suite.db
      .system('runs')
      .where({ id: runId })
      .first()
      .then(async (run) => {
        const id = '01890a5d-ac96-774b-bcce-b302099a8057'
        const { lane, trace_id, ...columns } = run
        await suite.db.system('runs').insert({
          ...columns,
          id,
          kind: 'node_test',
          workflow_id: null,
          workflow_version: null,
          trigger: '{"type":"node_test"}',
          inputs: '{}',
        })
        return { run_id: id }
      })
    await call('POST', `/v1/runs/${run_id}/migrate`, { version: 2 }, 404)
    const { key } = await createKey(suite.db, await createOrganization(suite.db))
    const path = `/v1/runs/${runId}/migrate`
    assert.equal((await suite.api.request('POST', path, { body: { version: 2 }, key })).status, 404)
  })

  it('lists the inputs that the new version does not accept, and sets the defaults of new ones', async () => {
    await save('Hey', '{tone: {type: string, required: true}, size: {type: number, required: true}}')
    const { error } = (await migrate({ version: 3 }, 409)).body
    assert.deepEqual(
      error.obstacles.map(({ code, node_id }: { code: string; node_id: string | null }) => [code, node_id]),
      [
        ['input_refused', null],
        ['input_refused', null],
      ],
    )
    for (const { message, hint } of error.obstacles) assert.ok(message && hint)
    assert.match(error.message, /^version 3 cannot continue the run: .*tone.*size/)
    await save('Hey', '{tone: {type: string, default: kind}}')
    assert.deepEqual((await migrate({ version: 4 })).body.inputs, { tone: 'kind' })
  })

  it('waits for the deployment of workers that can run the version', async () => {
    await suite.db
      .system('workflow_versions')
      .where({ workflow_id: workflowId, version: 2 })
      .update({
        program: suite.db.system.raw(`jsonb_set(cast(program as jsonb), '{engine}', ?)`, [
          String(ENGINE + 1),
        ]),
      })
    const { error } = (await migrate({ version: 2 }, 409)).body
    assert.equal(error.obstacles[0].code, 'engine_too_new')
    await suite.db
      .system('workflow_versions')
      .where({ workflow_id: workflowId, version: 2 })
      .update({
        program: suite.db.system.raw(`jsonb_set(cast(program as jsonb), '{engine}', '2')`),
      })
    const id = '01890a5d-ac96-774b-bcce-b302099a8058'
    await suite.db.system('relays').insert({ id, active: 1, engine: 1, seen_at: new Date() })
    assert.equal((await migrate({ version: 2 }, 409)).body.error.obstacles[0].code, 'engine_too_new')
    await suite.db.system('relays').where({ id }).delete()
    await migrate({ version: 2 })
  })

  it('makes a retry that was prepared for the version before fail with 412', async () => {
    await migrate({ version: 2 })
    await call('POST', `/v1/runs/${runId}/cancel`)
    const path = `/v1/runs/${runId}/retry`
    await call('POST', path, { confirm: true }, 412, { 'If-Match': '"1"' })
    const retried = await call('POST', path, { confirm: true }, 200, { 'If-Match': '"2"' })
    const run = (await call('GET', `/v1/runs/${retried.body.run_id}`)).body
    assert.deepEqual([run.workflow_version, run.migrations], [2, []])
  })

  it('is previewed and made in a batch, of the runs that have a version', async () => {
    const newer = await start()
    const filter = { workflow_id: workflowId, workflow_version: 1 }
    const listed = await call('GET', `/v1/runs?workflow_id=${workflowId}&workflow_version=1`)
    assert.deepEqual(
      listed.body.data.map(({ run_id }: { run_id: string }) => run_id),
      [runId],
    )
    assert.notEqual(newer, runId)
    await call('GET', '/v1/runs?workflow_version=one', undefined, 422)
    await call('GET', '/v1/runs?workflow_version=2147483648', undefined, 422)
    const wanted = { action: 'migrate', version: 2, filter }
    const { preview } = (await call('POST', '/v1/run-batches', wanted)).body
    const migration = { checked: 1, refused: 0, refusals: [] }
    assert.deepEqual(preview, { action: 'migrate', count: 1, run_ids: [runId], migration })
    const batch = (await call('POST', '/v1/run-batches', { ...wanted, confirm: true }, 201)).body
    assert.deepEqual([batch.action, batch.total], ['migrate', 1])
    const invalid = async (body: object, message: RegExp) =>
      assert.match((await call('POST', '/v1/run-batches', body, 422)).body.error.message, message)
    await invalid({ action: 'migrate', filter }, /version: migrate requires the version/)
    await invalid({ ...wanted, version: 'same' }, /version: migrate requires the version/)
    await invalid({ action: 'migrate', version: 2 }, /a version number belongs to one workflow/)
    await invalid({ ...wanted, version: 'newest' }, /^version: must be same or latest, or for migrate/)
    await invalid({ ...wanted, version: 9 }, /the workflow has no version 9/)
    const unknown = { workflow_id: '01890a5d-ac96-774b-bcce-b302099a8057' }
    await invalid({ ...wanted, filter: unknown }, /^filter.workflow_id: there is no such workflow/)
    await invalid(
      { ...wanted, filter: unknown, confirm: true },
      /^filter.workflow_id: there is no such workflow/,
    )
    await invalid({ action: 'retry', version: 2, filter }, /version: must be same or latest/)
    await invalid(
      { ...wanted, filter: { ...filter, status: ['failed'] } },
      /migrate applies to runs that are/,
    )
  })
})
