import assert from 'node:assert/strict'
import { withApiAndWorker } from '../../support/with-api.ts'

const SPEC = `name: Orders
nodes:
  each: { type: for_each, config: { items: [{ lines: [{ n: 1 }, { n: 2 }] }, { lines: [] }, { lines: [{}] }], on_item_error: continue } }
  inner: { type: for_each, config: { items: "{{ item.lines }}" } }
  double: { type: set_fields, config: { fields: { twice: "{{ item.n | times: 2 }}" } } }
`

describe('a run with loops', () => {
  const suite = withApiAndWorker()
  let path: string

  before(async () => {
    const saved = await suite.api.request('POST', '/v1/workflows', { body: { spec: SPEC } })
    assert.equal(saved.status, 201, JSON.stringify(saved.body))
    const { body } = await suite.api.request('POST', `/v1/workflows/${saved.body.workflow_id}/run`, {
      body: { confirm: true },
      headers: { Prefer: 'wait=20' },
    })
    assert.equal(body.status, 'completed', JSON.stringify(body))
    path = `/v1/runs/${body.run_id}`
  })

  const get = async (query: string, status = 200) => {
    const answer = await suite.api.request('GET', `${path}${query}`)
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    return answer.body
  }

  it('shows the nodes outside of loops, and how far its loops are', async () => {
    const { nodes } = await get('')
    const [each] = nodes
    assert.equal(nodes.length, 1)
    assert.deepEqual(
      [each.path, each.node_id, each.loop],
      ['', 'each', { loop: 'each', count: 3, started: 3, succeeded: 2, failed: 1 }],
    )
  })

  it('lists the items of a loop in order, by status and page by page', async () => {
    const { data, total } = await get('/iterations?loop=each')
    assert.deepEqual(
      data.map(({ path, index, status }: never) => [path, index, status]),
      [
        ['each:0', 0, 'completed'],
        ['each:1', 1, 'completed'],
        ['each:2', 2, 'failed'],
      ],
    )
    assert.equal(total, 3)
    assert.deepEqual(data[0].item, { lines: [{ n: 1 }, { n: 2 }] })
    assert.equal(data[2].error.node_id, 'inner')
    assert.equal((await get('/iterations?loop=each&status=failed')).data[0].index, 2)
    const first = await get('/iterations?loop=each&limit=2')
    assert.deepEqual([first.data.length, first.has_more], [2, true])
    const second = await get(`/iterations?loop=each&limit=2&cursor=${first.next_cursor}`)
    assert.deepEqual(
      second.data.map(({ index }: { index: number }) => index),
      [2],
    )
    assert.equal(second.next_cursor, null)
    const other = await get(`/iterations?loop=each&status=failed&cursor=${first.next_cursor}`, 400)
    assert.equal(other.error.type, 'invalid_request')
  })

  it('shows the nodes of one item, and those of a loop in it', async () => {
    const { nodes } = await get('?path=each:0')
    assert.deepEqual(
      nodes.map(({ path, node_id }: never) => [path, node_id]),
      [['each:0', 'inner']],
    )
    assert.equal(nodes[0].loop.loop, 'each:0/inner')
    const items = (await get('/iterations?loop=each:0/inner')).data
    assert.deepEqual(
      items.map(({ path }: { path: string }) => path),
      ['each:0/inner:0', 'each:0/inner:1'],
    )
    const inner = (await get('?path=each:0/inner:1')).nodes
    assert.deepEqual(inner[0].output, { twice: 4 })
  })

  it('is retried from a node in a loop, for the items that failed or are named', async () => {
    const retry = async (body: object, status = 200) => {
      const headers = { Prefer: 'wait=20' }
      const answer = await suite.api.request('POST', `${path}/retry`, { body, headers })
      assert.equal(answer.status, status, JSON.stringify(answer.body))
      return answer.body
    }
    const { preview } = await retry({ from_node: 'double' })
    assert.deepEqual(preview.loops, [
      { node_id: 'each', kept: 2, again: 1 },
      { node_id: 'inner', kept: 0, again: 1 },
    ])
    const { run_id } = await retry({ from_node: 'double', items: ['each:0/inner:1'], confirm: true })
    const { body: run } = await suite.api.request('GET', `/v1/runs/${run_id}`)
    assert.deepEqual(
      [run.status, run.retry],
      ['completed', { run_id: path.split('/').at(-1), from_node: 'double', items: ['each:0/inner:1'] }],
    )
    const [each] = run.nodes
    assert.deepEqual(each.loop, { loop: 'each', count: 3, started: 3, succeeded: 2, failed: 1 })
    const shown = await suite.api.request('GET', `/v1/runs/${run_id}/iterations?loop=each:0/inner`)
    assert.deepEqual(
      shown.body.data.map(({ output }: { output: unknown }) => output),
      [{ twice: 2 }, { twice: 4 }],
    )
    const unknown = await retry({ from_node: 'double', items: ['each:9/inner:0'] }, 409)
    assert.equal(unknown.error.param, 'items')
    await retry({ from_node: 'double', items: [] }, 422)
    await retry({ from_node: 'double', items: 'each:0' }, 422)
  })

  it('has no items of a loop that it did not reach, nor for others', async () => {
    assert.deepEqual((await get('/iterations?loop=none')).data, [])
    await get('/iterations', 422)
    const stranger = await suite.api.request(
      'GET',
      `/v1/runs/${'0'.repeat(8)}-0000-7000-8000-${'0'.repeat(12)}/iterations?loop=each`,
    )
    assert.equal(stranger.status, 404)
  })

  it('takes a list of 10,000 items at most, and says so, however large it is', async () => {
    const spec = `name: Lists
inputs: { list: array, text: string }
nodes:
  each: { type: for_each, config: { items: "{{ inputs.list }}" }, next: { item: body, done: split } }
  body: { type: set_fields, config: { fields: { n: "{{ item }}" } }, next: end }
  split: { type: for_each, config: { items: "{{ inputs.text | split: ',' }}" } }
  again: { type: set_fields, config: { fields: { n: "{{ item }}" } } }
`
    const saved = await suite.api.request('POST', '/v1/workflows', { body: { spec } })
    const run = (inputs: object) =>
      suite.api.request('POST', `/v1/workflows/${saved.body.workflow_id}/run`, {
        body: { inputs, confirm: true },
        headers: { Prefer: 'wait=20' },
      })
    const million = await run({ list: Array(1_000_000).fill(1), text: '' })
    assert.deepEqual([million.status, million.body.error.type], [413, 'payload_too_large'])
    for (const inputs of [
      { list: Array(10_001).fill(1), text: '' },
      { list: [], text: Array(10_001).fill('x').join(',') },
    ]) {
      const { body } = await run(inputs)
      assert.deepEqual(
        [body.status, body.error?.code, body.error?.message],
        ['failed', 'too_many_items', 'There are 10001 items: a loop takes 10000 at most.'],
      )
    }
    const { status, body } = await run({ list: 'a,b', text: '' })
    assert.deepEqual([status, body.error.type], [422, 'validation_error'])
    const text = await run({ list: [], text: 'x,'.repeat(400_000) })
    assert.deepEqual(
      [text.body.status, text.body.error?.node_id],
      ['failed', 'split'],
      JSON.stringify(text.body).slice(0, 500),
    )
  })
})
