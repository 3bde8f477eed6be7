import assert from 'node:assert/strict'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('the concurrency of a workflow, over two workers', () => {
  const suite = withWorker()
  let second: TestWorker
  before(async () => {
    second = await startWorker(suite.db)
  })
  after(() => second?.stop())

  const sleeping = (concurrency: Definition['settings']['concurrency'], time: string) => ({
    nodes: [{ id: 'sleep', type: 'delay', config: { for: time } }],
    settings: concurrency === undefined ? {} : { concurrency },
  })
  const row = (id: string) => suite.db.system('runs').where({ id }).first()
  /** Starts further runs of a run's workflow at the same time. */
  async function more(of: string, count: number): Promise<string[]> {
    const { workflow_id, workflow_version, workflow_name } = await row(of)
    const workflow = { id: workflow_id, version: workflow_version, name: workflow_name }
    return Promise.all(
      Array.from({ length: count }, () =>
        suite.db.tenant(suite.organizationId, testActor, (tx) =>
          createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START }),
        ),
      ),
    )
  }
  const queue = (definition: Parameters<typeof queueRun>[2]) =>
    queueRun(suite.db, suite.organizationId, definition)

  it('skips runs above the limit, with the reason', async () => {
    const first = await queue(sleeping({ policy: 'skip', limit: 2 }, '2s'))
    await untilRun(suite.db, first, ['running'])
    const ids = [first, ...(await more(first, 12))]
    const ends = await Promise.all(ids.map((id) => untilRun(suite.db, id)))
    const of = (status: string) => ends.filter((run) => run.status === status)
    assert.deepEqual([of('completed').length, of('skipped').length], [2, 11])
    assert.deepEqual(of('skipped')[0]?.error, {
      code: 'concurrency_limit',
      message: 'The run was skipped: Test allows 2 runs at a time, and skips others (settings.concurrency).',
    })
    const [next] = await more(first, 1)
    assert.equal((await untilRun(suite.db, next!)).status, 'completed')
  })

  it('cancels older runs for newer ones, queued ones too', async () => {
    const first = await queue(sleeping({ policy: 'cancel_running' }, '1s'))
    await untilRun(suite.db, first, ['running'])
    const ids = (await more(first, 4)).sort()
    const newest = ids.pop()!
    for (const id of [first, ...ids]) {
      const { status, error } = await untilRun(suite.db, id)
      assert.equal(status, 'cancelled')
      assert.match(error!.message, /^The run was cancelled by a newer one: Test allows one run at a time/)
    }
    assert.equal((await untilRun(suite.db, newest)).status, 'completed')
  })

  it('lets runs wait by default, and any number run with allow', async () => {
    const first = await queue(sleeping(1, '300ms'))
    const ids = [first, ...(await more(first, 2))]
    for (const id of ids) assert.equal((await untilRun(suite.db, id)).status, 'completed')
    const rows = await suite.db.system('runs').whereIn('id', ids).orderBy('started_at')
    for (const [i, run] of rows.slice(1).entries()) assert.ok(run.started_at >= rows[i].ended_at)

    const free = await queue(sleeping({ policy: 'allow' }, '1h'))
    for (const id of await more(free, 3)) await untilRun(suite.db, id, ['running'])
    assert.equal((await row(free)).status, 'running')
  })
})
