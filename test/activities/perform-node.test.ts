import assert from 'node:assert/strict'
import { pino } from 'pino'
import { createEffects } from '../../activities/effects/index.ts'
import { performNode } from '../../activities/perform-node.ts'
import type { Records } from '../../workflows/effects/records.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import { runFacts } from '../support/run-facts.ts'

describe('one attempt of a node', () => {
  let lines: string[]
  const log = pino({}, { write: (line: string) => lines.push(line) })
  const unused = () => {
    throw new Error('not part of this test')
  }
  const get = () => {
    throw new TypeError('cannot read hunter2')
  }
  const effects = { ...createEffects({ http: unused }), records: () => ({ get }) as unknown as Records }
  const perform = async (type: string, config: Record<string, unknown>, scope: Record<string, unknown>) => {
    const { outcome } = await performNode(
      { effects, log },
      {
        state: runFacts,
        scope,
        tx: undefined,
        attempt: 1,
        hold: () => () => {},
        reach: () => {},
        timeoutMs: 1_000,
        now: new Date(),
        node: { id: 'it', type, config, effect: findNodeType(type)!.effectClass(config) },
        path: '',
        signal: new AbortController().signal,
      },
    )
    return outcome
  }
  const run = (config: Record<string, unknown>, inputs: Record<string, unknown> = {}, type = 'set_fields') =>
    perform(type, config, { inputs })
  beforeEach(() => {
    lines = []
  })

  it('fails if the outputs of earlier nodes are too large in total', async () => {
    const nodes = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`n${n}`, { output: 'x'.repeat(900_000) }]))
    const config = { fields: { a: 1 } }
    assert.equal((await perform('set_fields', config, { nodes: nodes(9) })).status, 'completed')
    const outcome = await perform('set_fields', config, { nodes: nodes(10) })
    assert.equal(outcome.status === 'failed' && outcome.error.code, 'run_too_large')
  })

  it('fails a node whose output is larger than 1 MiB, with an error code', async () => {
    const half = 'x'.repeat(600_000)
    const fits = await run({ fields: { a: '{{ inputs.half }}' } }, { half })
    assert.equal(fits.status, 'completed')
    const outcome = await run({ fields: { a: '{{ inputs.half }}{{ inputs.half }}' } }, { half })
    assert.equal(outcome.status, 'failed')
    assert.deepEqual(outcome.error, {
      code: 'output_too_large',
      message: "The node's data is larger than 1024 KiB.",
    })
  })

  it('fails a node whose data is nested deeper than 200 levels, with a code', async () => {
    const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth))
    const at = (depth: number) => run({ fields: { a: '{{ inputs.deep }}' } }, { deep: nested(depth) })
    assert.equal((await at(198)).status, 'completed')
    for (const depth of [199, 5_000]) {
      const outcome = await at(depth)
      assert.deepEqual(outcome.status === 'failed' && outcome.error, {
        code: 'output_too_deep',
        message: "The node's data is nested deeper than 200 levels.",
      })
    }
  })

  it('refuses a large value that is referenced many times before it becomes JSON', async () => {
    const list = Array.from({ length: 600 }, () => '{{ inputs.big }}')
    const outcome = await run({ fields: { list } }, { big: 'x'.repeat(1_000_000) })
    assert.equal(outcome.status === 'failed' && outcome.error.code, 'output_too_large')
    // Numbers of one digit take two characters each, with their comma.
    const digits = (count: number) => run({ fields: { list: Array.from({ length: count }, () => 1) } })
    assert.equal((await digits(500_000)).status, 'completed')
    assert.equal((await digits(530_000)).status, 'failed')
  })

  it('replaces characters that PostgreSQL cannot store', async () => {
    const outcome = await run({ fields: { a: '{{ inputs.bad }}' } }, { bad: 'a\0b\ud800c' })
    assert.equal(outcome.status, 'completed')
    assert.deepEqual(outcome.output, { a: 'a\ufffdb\ufffdc' })
  })

  it('logs the stack of an internal error with the run, but not its message', async () => {
    const config = { operation: 'get', entity: 'contacts', id: runFacts.run.id }
    const outcome = await run(config, {}, 'crm_manager')
    assert.equal(outcome.status, 'failed')
    assert.equal(outcome.error.code, 'internal_error')
    assert.equal(lines.length, 1)
    const line = JSON.parse(lines[0]!)
    assert.deepEqual([line.run_id, line.node, line.error], [runFacts.run.id, 'it', 'TypeError'])
    assert.match(line.stack, /perform-node\.test\.ts/)
    assert.doesNotMatch(lines[0]!, /hunter2/)
  })

  it('names the setting that is invalid after rendering', async () => {
    const outcome = await run({ for: '{{ inputs.time }}' }, { time: 'soon' }, 'delay')
    assert.equal(outcome.status, 'failed')
    assert.equal(outcome.error.code, 'invalid_config')
    assert.match(outcome.error.message, /^for must be/)
    assert.deepEqual(outcome.input, { for: 'soon' })
  })

  it('describes an invalid config as validation does', async () => {
    const said = async (type: string, config: Record<string, unknown>) => {
      const outcome = await run(config, {}, type)
      return outcome.status === 'failed' && outcome.error.message
    }
    assert.equal(await said('condition', { bad: 1 }), 'conditions is missing; condition has no setting bad')
    assert.equal(
      await said('switch', { value: 1, cases: { error: 1 } }),
      'cases.error is a reserved handle name: choose another',
    )
  })

  it('stores no secret of a call, neither a sent one nor one that could not be rendered', async () => {
    const call = {
      method: 'POST',
      url: 'https://ada:hunter2@example.com/a?page=1&access%5Ftoken=hunter2&q=x#part',
      headers: { Authorization: 'Bearer hunter2', 'X-Api-Key': 'hunter2', Accept: 'text/plain' },
      query: { api_key: 'hunter2', page: 1 },
      body: { user: 'ada', login: [{ password: 'hunter2' }], client_secret: 'hunter2' },
    }
    const sent = await run(call, {}, 'api_request')
    assert.deepEqual(sent.input, {
      ...call,
      url: 'https://ada:[masked]@example.com/a?page=1&access%5Ftoken=[masked]&q=x#part',
      headers: { Authorization: '[masked]', 'X-Api-Key': '[masked]', Accept: 'text/plain' },
      query: { api_key: '[masked]', page: 1 },
      body: { user: 'ada', login: [{ password: '[masked]' }], client_secret: '[masked]' },
    })
    const failed = await run({ fields: { a: 'Bearer hunter2 {{ inputs.missing }}' } })
    assert.equal(failed.status, 'failed')
    assert.match(failed.error.message, /\{\{ inputs.missing \}\}/)
    assert.doesNotMatch(JSON.stringify([sent, failed, lines]), /hunter2/)
  })

  it('sends no headers of the connection', async () => {
    const outcome = await run(
      { url: 'https://example.com/', headers: { 'Transfer-Encoding': 'chunked' } },
      {},
      'api_request',
    )
    assert.equal(outcome.status === 'failed' && outcome.error.code, 'invalid_config')
  })
})
