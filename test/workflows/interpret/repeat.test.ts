import assert from 'node:assert/strict'
import type { NodeSpec } from '../../../workflows/language/definition.ts'
import { edge } from '../../support/nodes.ts'
import { call, delay, runOf, set } from '../../support/run-in-memory.ts'

const repeat = (config: Record<string, unknown>, more: Partial<NodeSpec> = {}): NodeSpec => ({
  id: 'again',
  type: 'repeat',
  config,
  ...more,
})
const fields = (id: string, value: unknown, more: Partial<NodeSpec> = {}): NodeSpec =>
  set(id, { config: { fields: { value } }, ...more })
const body = edge('again', 'body', 'turn')
const count = '{{ previous | plus: 1 }}'
const outputs = { all: '{{ nodes.again.output }}' }

describe('a repeat', () => {
  it('runs its body until the condition holds; a turn reads the result of the one before', async () => {
    const run = runOf({
      nodes: [
        repeat({
          initial: 10,
          until: '{{ nodes.body.output.value >= 13 }}',
          output: '{{ nodes.body.output.value }}',
        }),
        fields('body', count),
        fields('after', '{{ nodes.again.output.last }} {{ nodes.again.output.results | sum }}'),
      ],
      edges: [body, edge('again', 'after', 'done')],
      outputs: { ...outputs, after: '{{ nodes.after.output.value }}' },
    })
    assert.deepEqual((await run.next()).end?.outputs, {
      all: { turns: 3, ended_by: 'until', last: 13, results: [11, 12, 13] },
      after: '13 36',
    })
    assert.deepEqual(run.rows.get('again')?.input, { max_turns: 100, on_limit: 'fail', pause_ms: 0 })
    assert.deepEqual(
      [...run.iterations.values()].map(({ item }) => item),
      [10, 11, 12],
    )
  })

  it('ends by a condition that reads a node which did not run as null', async () => {
    const run = runOf({
      nodes: [
        repeat({
          until: '{{ nodes.body.output.value == nil and index == 1 }}',
          output: "{{ nodes.body.output.value | default: 'none' }}",
        }),
        fields('body', 'yes', { when: '{{ index == 0 }}' }),
      ],
      edges: [body],
      outputs,
    })
    const all = { turns: 2, ended_by: 'until', last: 'none', results: ['yes', 'none'] }
    assert.deepEqual((await run.next()).end?.outputs, { all })
  })

  it('has the output of the last node as the result of a turn, and null before the first', async () => {
    const run = runOf({
      nodes: [
        repeat({ until: '{{ index == 1 }}' }),
        fields('body', '{{ previous.value | default: "first" }} {{ nodes.again.output.index }}'),
      ],
      edges: [body],
      outputs,
    })
    assert.deepEqual((await run.next()).end?.outputs, {
      all: {
        turns: 2,
        ended_by: 'until',
        last: { value: 'first 0 1' },
        results: [{ value: 'first 0' }, { value: 'first 0 1' }],
      },
    })
  })

  it('fails after `max_turns`, or leaves by `done` where `on_limit` says so', async () => {
    const limited = (config: Record<string, unknown>) =>
      runOf({
        nodes: [repeat({ until: false, max_turns: 3, ...config }), set('body')],
        edges: [body],
        outputs,
      })
    const { end } = await limited({}).next()
    assert.deepEqual(end?.error, {
      code: 'turn_limit',
      message: 'until did not hold in 3 turns: raise max_turns of again, or mend its condition.',
      details: { turns: 3 },
      node_id: 'again',
    })
    const stopped = (await limited({ on_limit: 'stop' }).next()).end?.outputs as { all: object }
    const value = { value: 'body' }
    assert.deepEqual(stopped.all, {
      turns: 3,
      ended_by: 'limit',
      last: value,
      results: [value, value, value],
    })
  })

  it('pauses between turns, and not after the last', async () => {
    const run = runOf({
      nodes: [repeat({ until: '{{ index == 1 }}', pause: '1m' }), set('body')],
      edges: [body],
      outputs,
    })
    const first = await run.next()
    assert.deepEqual(first.answer.commands, [{ type: 'timer', node: 'again', title: 'again', ms: 60_000 }])
    assert.equal(first.sleepsUntil, '2026-01-01T00:01:00.000Z')
    assert.equal(run.rows.get('again')?.status, 'waiting')
    // Another event does not shorten the pause; a workflow that begins anew waits for what remains.
    assert.deepEqual((await run.next({ type: 'refresh' })).answer.commands, [])
    assert.equal((await run.segment({ reissue: true })).answer.commands[0]?.type, 'timer')
    const second = await run.next({ type: 'timer', node: 'again' })
    assert.equal((second.end!.outputs as { all: { turns: number } }).all.turns, 2)
    assert.equal(run.rows.get('again')?.wait_until, null)
  })

  it('fails with the node that fails in a turn, and by `error` where that leads on', async () => {
    const failing = fields('body', '{{ inputs.missing }}')
    const run = runOf({ nodes: [repeat({ until: true }), failing], edges: [body] })
    const { end } = await run.next()
    assert.deepEqual(
      [end?.error?.code, end?.error?.node_id, end?.error?.details?.index],
      ['turn_failed', 'again', 0],
    )
    const handled = runOf({
      nodes: [repeat({ until: true }), failing, set('mended')],
      edges: [body, edge('again', 'mended', 'error')],
    })
    assert.equal((await handled.next()).end?.status, 'completed')
  })

  it('fails where the condition is neither true nor false; one of a skipped node does not hold', async () => {
    const of = (until: unknown, when = 'true') =>
      runOf({
        nodes: [repeat({ until, max_turns: 2 }), fields('body', 'yes', { when })],
        edges: [body],
      }).next()
    const wrong = (await of('{{ nodes.body.output.value }}')).end?.error
    assert.equal(wrong?.message, 'Turn 0 of again failed: until: must be true or false, and is a string')
    const skipped = (await of('{{ nodes.body.output.value == "yes" }}', '{{ false }}')).end?.error
    assert.equal(skipped?.code, 'turn_limit')
  })

  it('goes on in the next segment, with calls and waits in its body', async () => {
    const run = runOf(
      {
        nodes: [
          repeat({ until: '{{ index == 4 }}', output: { n: '{{ previous.n | default: 0 | plus: 1 }}' } }),
          delay('body'),
          call('call'),
        ],
        edges: [body, edge('body', 'call')],
        outputs,
      },
      { limits: { segmentNodes: 1 } },
    )
    let segments = 0
    let happened: Parameters<typeof run.next> = []
    for (;;) {
      const { answer, end } = await run.next(...happened)
      segments += 1
      if (end) {
        const results = [1, 2, 3, 4, 5].map((n) => ({ n }))
        assert.deepEqual(end.outputs, { all: { turns: 5, ended_by: 'until', last: { n: 5 }, results } })
        break
      }
      assert.ok(segments < 40)
      happened = answer.commands.flatMap((command): typeof happened => {
        if (command.type === 'timer') return [{ type: 'timer', node: 'body', path: command.path! }]
        if (command.type !== 'external') return []
        run.leave(`${command.path}/call`, { status: 'completed', output: {}, handle: 'success' })
        return [{ type: 'settled', node: 'call', path: command.path! }]
      })
    }
  })

  it('nests: `item` is that of the for_each around it, `previous` that of the innermost repeat', async () => {
    const run = runOf({
      nodes: [
        {
          id: 'each',
          type: 'for_each',
          config: { items: ['a', 'b'], output: '{{ nodes.again.output.last }}' },
        },
        repeat({ initial: '', until: '{{ index == 2 }}', output: '{{ nodes.body.output.value }}' }),
        fields('body', '{{ previous }}{{ item }}{{ index }}{{ nodes.each.output.index }}'),
      ],
      edges: [edge('each', 'again', 'item'), body],
      outputs: { values: '{{ nodes.each.output.results }}' },
    })
    assert.deepEqual((await run.next()).end?.outputs, { values: ['a00a10a20', 'b01b11b21'] })
  })
})
