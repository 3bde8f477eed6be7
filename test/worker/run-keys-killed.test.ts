import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../support/until.ts'
import { withStack } from '../support/with-stack.ts'

const KEYS = 5
const STARTS = 8

describe('debounced and rated runs while the worker and the api are killed', () => {
  const on = withStack()

  /** Sends a request until the api, which was killed and comes again, answers. */
  async function send(path: string, body: unknown, key: string) {
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await fetch(on.stack.apiUrl + path, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${on.stack.key}`,
            'Content-Type': 'application/json',
            'Idempotency-Key': key,
          },
          body: JSON.stringify(body),
        })
        if (answer.status < 500)
          return { status: answer.status, body: (await answer.json()) as { workflow_id: string } }
      } catch {}
      assert.ok(attempt < 300, 'the api does not come again')
      await pause(100)
    }
  }

  async function workflow(name: string, settings: string): Promise<string> {
    const spec = `name: ${name}
inputs: {key: {type: string, required: true}, n: {type: number, required: true}}
settings: ${settings}
nodes:
  mark: {type: stop, config: {outputs: {n: "{{ inputs.n }}"}}}
`
    const { status, body } = await send('/v1/workflows', { spec }, name)
    assert.ok(status < 300, JSON.stringify(body))
    return body.workflow_id
  }

  const ended = (id: string) =>
    until(async () => {
      const rows = await on.db.system('runs').where({ workflow_id: id }).orderBy('id')
      return rows.length > 0 && rows.every(({ ended_at }) => ended_at) && rows
    })

  it('starts each key once with its last data, and keeps the rate', async () => {
    const debounced = await workflow('Debounced', '{debounce: {key: "{{ inputs.key }}", for: 6s}}')
    const rated = await workflow('Rated', '{rate: {key: "{{ inputs.key }}", limit: 2, per: 4s}}')
    for (let n = 0; n < STARTS; n++) {
      for (let k = 0; k < KEYS; k++)
        await send(
          `/v1/workflows/${debounced}/run`,
          { inputs: { key: `k${k}`, n }, confirm: true },
          `d${k}-${n}`,
        )
      await send(`/v1/workflows/${rated}/run`, { inputs: { key: 'k', n }, confirm: true }, `r${n}`)
      if (n === 2) on.stack.kill('worker')
      if (n === 4) on.stack.kill('api')
      if (n === 6) on.stack.kill('worker')
    }
    await pause(1_500)
    on.stack.kill('worker')

    const runs = await ended(debounced)
    assert.equal(runs.length, KEYS * STARTS, 'no start is lost or doubled')
    for (let k = 0; k < KEYS; k++) {
      const own = runs.filter(({ inputs }) => inputs.key === `k${k}`)
      const done = own.filter(({ status }) => status === 'completed')
      assert.equal(own.length - done.length, own.filter(({ error }) => error?.code === 'debounced').length)
      assert.equal(done.at(-1).inputs.n, STARTS - 1, 'the last one ran')
      for (const [i, run] of done.entries())
        if (i > 0) assert.ok(run.created_at - done[i - 1].created_at >= 6_000, 'the key was quiet in between')
    }

    const through = await ended(rated)
    assert.equal(through.length, STARTS)
    assert.ok(through.every(({ status }) => status === 'completed'))
    const times = through.map(({ rated_at }) => Number(rated_at)).sort((a, b) => a - b)
    for (let i = 2; i < times.length; i++) assert.ok(times[i]! - times[i - 2]! >= 4_000)
  })
})
