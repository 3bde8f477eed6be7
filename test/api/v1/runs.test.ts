import assert from 'node:assert/strict'
import { CHAIN_START, createRun } from '../../../db/runs/runs.ts'
import { createWorkflow } from '../../../db/workflows/workflows.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../../support/database.ts'

const definition: Definition = {
  name: 'Nothing',
  trigger: { type: 'manual' },
  inputs: {},
  nodes: [{ id: 'end', type: 'stop', config: {} }],
  edges: [],
  outputs: {},
  settings: {},
}

describe('the list of runs', () => {
  let db: TestDatabase
  let api: TestApi
  const ids: string[] = []

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    await db.tenant(api.organizationId, testActor, async (tx) => {
      const content = { spec: null, definition, program: compile(definition) }
      const { id } = await createWorkflow(tx, { name: 'Nothing', description: null, ...content })
      const run = { workflow: { id, version: 1, name: 'Nothing' }, trigger: { type: 'api' as const } }
      for (let n = 0; n < 5; n++) ids.push(await createRun(tx, { ...run, inputs: { n }, chain: CHAIN_START }))
    })
  })
  after(async () => {
    await api?.close()
    await db?.drop()
  })

  const list = async (query: string, status = 200) => {
    const answer = await api.request('GET', `/v1/runs?${query}`)
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    return answer.body
  }
  const idsOf = ({ data }: { data: { run_id: string }[] }) => data.map(({ run_id }) => run_id)

  it('is sorted by creation, newest or oldest first', async () => {
    assert.deepEqual(idsOf(await list('order=asc')), ids)
    assert.deepEqual(idsOf(await list('')), ids.toReversed())
    assert.deepEqual(idsOf(await list('limit=2&offset=1&order=asc')), ids.slice(1, 3))
  })

  it('has only late runs, or only others, with `late`', async () => {
    const late = ids[2]!
    await db
      .system('runs')
      .where({ id: late })
      .update({ expected_by: db.system.fn.now(), late_at: db.system.fn.now() })
    const found = await list('late=true')
    assert.deepEqual(idsOf(found), [late])
    assert.ok(found.data[0].late_at && found.data[0].expected_by)
    assert.deepEqual(idsOf(await list('late=false&order=asc')), ids.toSpliced(2, 1))
    assert.match((await list('late=maybe', 422)).error.message, /^late: /)
    const batch = { action: 'cancel', filter: { late: true } }
    const { body } = await api.request('POST', '/v1/run-batches', { body: batch })
    assert.deepEqual(body.preview.run_ids, [late])
  })

  it('counts as `count` requests', async () => {
    const totals = await Promise.all(['exact', 'estimated', 'none'].map((count) => list(`count=${count}`)))
    assert.deepEqual(
      totals.map(({ total, total_is_estimate }) => [total, total_is_estimate]),
      [
        [5, false],
        [5, false],
        [null, false],
      ],
    )
  })

  it('pages by cursors that are valid only with their order and filters', async () => {
    const first = await list('limit=3&order=asc')
    assert.equal(first.has_more, true)
    const rest = await list(`limit=3&order=asc&cursor=${first.next_cursor}`)
    assert.deepEqual([...idsOf(first), ...idsOf(rest)], ids)
    assert.deepEqual([rest.has_more, rest.next_cursor], [false, null])
    await list(`cursor=${first.next_cursor}`, 400)
    await list(`order=asc&status=queued&cursor=${first.next_cursor}`, 400)
    await list(`order=asc&offset=1&cursor=${first.next_cursor}`, 400)
    await list('cursor=rubbish', 400)
    await list('colour=red', 422)
  })
})
