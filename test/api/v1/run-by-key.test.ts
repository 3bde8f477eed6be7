import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { admitRuns } from '../../../db/runs/holds/admit.ts'
import { endUnrecordedRun } from '../../../db/runs/moves/ends.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../../support/database.ts'
import { saveWorkflow } from '../../support/worker.ts'

describe('running a workflow with a key', () => {
  let db: TestDatabase
  let api: TestApi
  let id: string
  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    id = (
      await saveWorkflow(db, api.organizationId, {
        name: 'Keyed',
        nodes: [{ id: 'more', type: 'wait_for_signal', config: { name: 'more' } }],
      })
    ).id
  })
  after(async () => {
    await api?.close()
    await db?.drop()
  })

  const run = (body: object) =>
    api.request('POST', `/v1/workflows/${id}/run`, { body: { confirm: true, ...body } })
  const cancel = (runId: string) => api.request('POST', `/v1/runs/${runId}/cancel`)

  it('finds the open run instead of starting another one, and starts one after its end', async () => {
    const first = await run({ key: 'order-1' })
    deepEqual([first.status, first.body.status, first.body.existing], [200, 'queued', undefined])
    const again = await run({ key: 'order-1' })
    deepEqual([again.status, again.body.existing, again.body.run_id], [200, true, first.body.run_id])
    const byName = await api.request('POST', '/v1/workflows/run-by-name', {
      body: { name: 'Keyed', key: 'order-1', confirm: true },
    })
    equal(byName.body.run_id, first.body.run_id)
    notEqual((await run({ key: 'order-2' })).body.run_id, first.body.run_id)
    equal((await api.request('GET', `/v1/runs/${first.body.run_id}`)).body.key, 'order-1')
    const preview = await run({ key: 'order-1', confirm: false })
    match(preview.body.preview.warnings.join(), new RegExp(`${first.body.run_id} has this key and is queued`))
    equal((await cancel(first.body.run_id)).status, 200)
    const next = await run({ key: 'order-1' })
    deepEqual([next.body.existing, next.body.run_id === first.body.run_id], [undefined, false])
  })

  it('starts one run for 20 concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => run({ key: 'race' })))
    equal(new Set(answers.map(({ body }) => body.run_id)).size, 1)
    equal(answers.filter(({ body }) => body.existing === undefined).length, 1)
    equal(
      await db
        .system('runs')
        .where({ run_key: 'race' })
        .count('* as n')
        .first()
        .then((row) => Number(row!.n)),
      1,
    )
  })

  it('refuses with on_conflict: fail, and says which run has the key', async () => {
    const { body } = await run({ key: 'once' })
    const refused = await run({ key: 'once', on_conflict: 'fail' })
    deepEqual([refused.status, refused.body.error.type], [409, 'conflict'])
    match(refused.body.error.message, new RegExp(body.run_id))
  })

  it('starts one that waits for the end of a run whose cancellation was requested', async () => {
    const first = await run({ key: 'cancelled' })
    const row = (runId: string) => db.system('runs').where({ id: runId })
    await row(first.body.run_id).update({ status: 'running', temporal_run_id: 'its workflow' })
    equal((await cancel(first.body.run_id)).status, 200)
    equal((await row(first.body.run_id).first()).status, 'running')
    const preview = await run({ key: 'cancelled', confirm: false })
    match(preview.body.preview.warnings.join(), /^(?!.*has this key)/)
    const next = await run({ key: 'cancelled', on_conflict: 'fail' })
    deepEqual([next.status, next.body.existing], [200, undefined])
    notEqual(next.body.run_id, first.body.run_id)
    const again = await run({ key: 'cancelled' })
    deepEqual([again.body.existing, again.body.run_id], [true, next.body.run_id])

    const admit = () => db.tenant(api.organizationId, testActor, (tx) => admitRuns(tx, 100))
    const waits = async () => (await api.request('GET', `/v1/runs/${next.body.run_id}`)).body.waiting_for
    await admit()
    equal(await waits(), 'predecessor')
    equal((await row(next.body.run_id).first()).status, 'queued')
    // Were its end not told of, a look a minute later would find it.
    ok((await row(next.body.run_id).first()).hold_until > new Date())
    const error = { code: 'cancelled', message: 'The run was cancelled.' }
    await db.tenant(api.organizationId, testActor, (tx) =>
      endUnrecordedRun(tx, first.body.run_id, 'its workflow', 'cancelled', error),
    )
    await admit()
    equal((await row(next.body.run_id).first()).hold, null)
    notEqual(await waits(), 'predecessor')
  })

  it('signals the open run or the new one', async () => {
    const first = await run({ key: 's', signal: { name: 'more', payload: 1 } })
    const second = await run({ key: 's', signal: { name: 'more', payload: 2 } })
    equal(second.body.run_id, first.body.run_id)
    const signals = await db.system('run_signals').where({ run_id: first.body.run_id }).orderBy('id')
    deepEqual(
      signals.map(({ name, payload }) => [name, payload]),
      [
        ['more', 1],
        ['more', 2],
      ],
    )
    const other = await run({ key: 's', signal: { name: 'mare' } })
    deepEqual([other.status, other.body.error.hint], [409, 'did you mean more?'])
  })

  it('refuses an empty key, one of 10 KB, and signal without key', async () => {
    for (const body of [
      { key: '' },
      { key: ' \n' },
      { key: 'x'.repeat(10_240) },
      { signal: { name: 'a' } },
      { on_conflict: 'fail' },
    ]) {
      const { status, body: answer } = await run(body)
      equal(status, 422)
      equal(answer.detail[0].loc.at(-1), 'key')
    }
  })
})
