import assert from 'node:assert/strict'
import { until } from '../../support/until.ts'
import { withApiAndWorker } from '../../support/with-api.ts'

const SPEC = (config: string) => `name: Count
nodes:
  count: {type: repeat, config: {initial: 0, output: "{{ nodes.add.output.n }}", ${config}}, next: {turn: add, done: tell}}
  add: {type: set_fields, config: {fields: {n: "{{ previous | plus: 1 }}"}}}
  tell: {type: emit_event, config: {event: count.done, data: {turns: "{{ nodes.count.output.turns }}"}}}
outputs: {last: "{{ nodes.count.output.last }}"}
`

// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = any

describe('a run with a repeat', () => {
  const suite = withApiAndWorker()
  const call = async (method: string, path: string, body?: unknown, headers = {}): Promise<Json> => {
    const answer = await suite.api.request(method, path, { ...(body !== undefined && { body }), headers })
    assert.ok(answer.status < 300, JSON.stringify(answer.body))
    return answer.body
  }
  const save = async (config: string): Promise<string> =>
    `/v1/workflows/${(await call('POST', '/v1/workflows', { spec: SPEC(config) })).workflow_id}`
  const start = async (workflow: string, wait = 20): Promise<string> =>
    (await call('POST', `${workflow}/run`, { confirm: true }, { Prefer: `wait=${wait}` })).run_id
  const untilIt = (run: string, holds: (run: Json) => boolean): Promise<Json> =>
    until(async () => {
      const found = await call('GET', `/v1/runs/${run}`)
      return holds(found) && found
    })
  const inPause = ({ nodes }: Json) => nodes[0]?.wait_until != null

  it('shows its turns as a loop shows its items', async () => {
    const run = await start(await save('until: "{{ index == 2 }}"'))
    const { nodes, outputs } = await call('GET', `/v1/runs/${run}`)
    assert.deepEqual(outputs, { last: 3 })
    assert.deepEqual(nodes[0].loop, { loop: 'count', count: 100, started: 3, succeeded: 3, failed: 0 })
    const { data } = await call('GET', `/v1/runs/${run}/iterations?loop=count`)
    assert.deepEqual(
      data.map(({ path, item, output }: Json) => [path, item, output]),
      [
        ['count:0', 0, 1],
        ['count:1', 1, 2],
        ['count:2', 2, 3],
      ],
    )
    assert.deepEqual((await call('GET', `/v1/runs/${run}?path=count:1`)).nodes[0].output, { n: 2 })
  })

  it('is paused, migrated and resumed between two turns', async () => {
    const workflow = await save('until: "{{ index == 50 }}", pause: 1s')
    const run = await start(workflow, 0)
    await untilIt(run, inPause)
    await call('POST', `/v1/runs/${run}/pause`)
    const paused = await untilIt(run, ({ status }) => status === 'paused')
    const turns = paused.nodes[0].loop.succeeded
    assert.ok(turns >= 1)
    await call('PATCH', workflow, { spec: SPEC(`until: "{{ index >= ${turns} }}", pause: 1s`) })
    await call('POST', `/v1/runs/${run}/migrate`, { version: 2 })
    await call('POST', `/v1/runs/${run}/resume`)
    const { outputs } = await untilIt(run, ({ status }) => status === 'completed')
    assert.deepEqual(outputs, { last: turns + 1 })
  })

  it('is cancelled in a pause', async () => {
    const run = await start(await save('until: "{{ index == 50 }}", pause: 1d'), 0)
    assert.equal((await untilIt(run, inPause)).nodes[0].status, 'waiting')
    await call('POST', `/v1/runs/${run}/cancel`)
    const { nodes } = await untilIt(run, ({ status }) => status === 'cancelled')
    assert.equal(nodes[0].status, 'cancelled')
  })

  it('is previewed with its first turn, and tested within bounds', async () => {
    const workflow = await save('until: "{{ index == 50 }}", pause: 1d')
    const { preview } = await call('POST', `${workflow}/run`, {})
    const [count, add] = preview.nodes
    assert.match(JSON.stringify(count), /run its body until its condition holds, 100 times at most/)
    assert.match(JSON.stringify(add), /"n":1/)
    const test = await call('POST', `${workflow}/nodes/count/test`, { confirm: true })
    assert.deepEqual(
      [test.status, test.output.turns, test.output.ended_by, test.output.last],
      ['completed', 20, 'limit', 20],
      JSON.stringify(test),
    )
    assert.match(JSON.stringify(test.log), /runs at most 20 of 100 turns/)
  })
})
