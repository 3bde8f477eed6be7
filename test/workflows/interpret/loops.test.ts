import assert from 'node:assert/strict'
import type { NodeSpec } from '../../../workflows/language/definition.ts'
import { edge } from '../../support/nodes.ts'
import { call, delay, runOf, set } from '../../support/run-in-memory.ts'

const each = (config: Record<string, unknown>, more: Partial<NodeSpec> = {}): NodeSpec => ({
  id: 'each',
  type: 'for_each',
  config,
  ...more,
})
const fields = (id: string, value: unknown, more: Partial<NodeSpec> = {}): NodeSpec =>
  set(id, { config: { fields: { value } }, ...more })
const failing = (id: string) => fields(id, '{{ inputs.missing }}')
const body = edge('each', 'body', 'item')
const results = { items: '{{ nodes.each.output.items }}' }
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('a loop', () => {
  it('runs its body for each item, then what follows, with the results in order', async () => {
    const run = runOf({
      nodes: [
        each({ items: ['a', 'b', 'c'] }),
        fields('body', '{{ index }}: {{ item }} of {{ nodes.each.output.count }}'),
        fields('after', '{{ nodes.each.output.items | map: "output" }}'),
      ],
      edges: [body, edge('each', 'after', 'done')],
      outputs: { all: '{{ nodes.each.output }}', last: '{{ nodes.after.output.value }}' },
    })
    const { end } = await run.next()
    const values = ['0: a of 3', '1: b of 3', '2: c of 3'].map((value) => ({ value }))
    assert.deepEqual(end?.outputs, {
      all: {
        count: 3,
        succeeded: 3,
        failed: 0,
        items: values.map((output, index) => ({ index, status: 'completed', output })),
      },
      last: values,
    })
    assert.deepEqual(run.statuses(), {
      each: 'completed',
      'each:0/body': 'completed',
      'each:1/body': 'completed',
      'each:2/body': 'completed',
      after: 'completed',
    })
    assert.deepEqual(run.rows.get('each')?.input, { concurrency: 1, on_item_error: 'stop' })
  })

  it('has the outputs of the completed items as `results`', async () => {
    const run = runOf({
      nodes: [
        each({
          items: [1, 'x', 3],
          on_item_error: 'continue',
          output: { eur: '{{ nodes.body.output.value }}' },
        }),
        fields('body', '{{ item | times: 2 }}'),
        fields('sum', '{{ nodes.each.output.results | sum: "eur" }}'),
        {
          id: 'sums',
          type: 'aggregate_items',
          config: {
            items: '{{ nodes.each.output.results }}',
            values: { total: { function: 'sum', field: 'eur' } },
          },
        },
      ],
      edges: [body, edge('each', 'sum', 'done'), edge('sum', 'sums')],
      outputs: {
        results: '{{ nodes.each.output.results }}',
        sum: '{{ nodes.sum.output.value }}',
        total: '{{ nodes.sums.output.values.total }}',
        failed: '{{ nodes.each.output.failed }}',
      },
    })
    assert.deepEqual((await run.next()).end?.outputs, {
      results: [{ eur: 2 }, { eur: 6 }],
      sum: 8,
      total: 8,
      failed: 1,
    })
  })

  it('over an empty list leaves by `done` at once', async () => {
    const run = runOf({ nodes: [each({ items: [] }), set('body')], edges: [body], outputs: results })
    assert.deepEqual((await run.next()).end?.outputs, { items: [] })
    assert.deepEqual(run.statuses(), { each: 'completed' })
  })

  it('goes on in the next segment where a limit ended the last one', async () => {
    const run = runOf(
      {
        nodes: [each({ items: numbers(7), output: '{{ item }}' }), set('body')],
        edges: [body],
        outputs: { values: '{{ nodes.each.output.items | map: "output" }}' },
      },
      { limits: { segmentNodes: 3 } },
    )
    for (const _ of [1, 2]) assert.deepEqual((await run.next()).answer.commands, [{ type: 'continue' }])
    assert.deepEqual(run.loops.get('each')?.succeeded, 5)
    assert.deepEqual((await run.next()).end?.outputs, { values: numbers(7) })
  })

  it('renders `output` for each item, null where a node did not complete', async () => {
    const run = runOf({
      nodes: [
        each({
          items: [false, 2],
          output: {
            item: '{{ item }}',
            value: '{{ nodes.body.output.value }}',
            is_two: '{{ nodes.body.output.value == 2 }}',
            either: "{{ nodes.body.output.value | default: nodes.body.output.value | default: 'none' }}",
          },
        }),
        fields('body', '{{ item }}', { when: '{{ item }}' }),
      ],
      edges: [body],
      outputs: { values: '{{ nodes.each.output.items | map: "output" }}' },
    })
    const { end } = await run.next()
    assert.deepEqual(end?.outputs, {
      values: [
        { item: false, value: null, is_two: false, either: 'none' },
        { item: 2, value: 2, is_two: true, either: 2 },
      ],
    })
  })

  it('opens as many items as `concurrency` allows, the next one as soon as one is done', async () => {
    const run = runOf({
      nodes: [each({ items: numbers(5), concurrency: 2 }), call('body')],
      edges: [body],
      outputs: results,
    })
    const calls = async (...done: number[]) => {
      for (const index of done)
        run.leave(`each:${index}/body`, { status: 'completed', handle: 'success', output: index })
      const happened = done.map((index) => ({
        type: 'settled' as const,
        node: 'body',
        path: `each:${index}`,
      }))
      const { answer, end } = await run.next(...happened)
      return end ? end.outputs : answer.commands.map((command) => 'path' in command && command.path)
    }
    assert.deepEqual(await calls(), ['each:0', 'each:1'])
    assert.deepEqual(await calls(1), ['each:2'])
    assert.deepEqual(await calls(0, 2), ['each:3', 'each:4'])
    assert.deepEqual(await calls(4), [])
    const items = numbers(5).map((index) => ({ index, status: 'completed', output: index }))
    assert.deepEqual(await calls(3), { items })
  })

  it('with waits in its body sleeps until the first of them', async () => {
    const run = runOf({ nodes: [each({ items: [1, 2], concurrency: 2 }), delay('body')], edges: [body] })
    const first = await run.next()
    assert.deepEqual(
      first.answer.commands.map((command) => [command.type, 'path' in command && command.path]),
      [
        ['timer', 'each:0'],
        ['timer', 'each:1'],
      ],
    )
    assert.equal(first.sleepsUntil, '2026-01-01T01:00:00.000Z')
    await run.next({ type: 'timer', node: 'body', path: 'each:1' })
    assert.equal((await run.next({ type: 'timer', node: 'body', path: 'each:0' })).end?.status, 'completed')
  })

  describe('in a loop', () => {
    const nested = (inner: Record<string, unknown>, last: NodeSpec, outputs = {}) => ({
      nodes: [
        each({ items: [['a', 'b'], [], ['c']] }),
        { id: 'inner', type: 'for_each', config: { items: '{{ item }}', ...inner } },
        last,
      ],
      edges: [edge('each', 'inner', 'item'), edge('inner', 'last', 'item')],
      outputs,
    })

    it('reads its own item, and that of the loop around it by its id', async () => {
      const text = '{{ nodes.each.output.index }}.{{ index }} {{ item }}'
      const run = runOf(
        nested({ output: '{{ nodes.last.output.value }}' }, fields('last', text), {
          rows: '{{ nodes.each.output.items }}',
        }),
        { limits: { segmentNodes: 2 } },
      )
      let end = (await run.next()).end
      for (let count = 0; !end && count < 5; count++) end = (await run.next()).end
      const rows = (end!.outputs as { rows: { output: { items: { output: unknown }[] } }[] }).rows
      assert.deepEqual(
        rows.map(({ output }) => output.items.map(({ output }) => output)),
        [['0.0 a', '0.1 b'], [], ['2.0 c']],
      )
      assert.equal(run.rows.get('each:2/inner:0/last')?.status, 'completed')
    })

    it('fails the item around it with the place of the failure', async () => {
      const { end } = await runOf(nested({}, failing('last'))).next()
      assert.equal(end?.error?.code, 'item_failed')
      assert.equal(end?.error?.node_id, 'each')
      assert.match(end!.error!.message, /^Item 0 of each failed: Item 0 of inner failed: /)
      const { details } = end!.error as unknown as {
        details: { error: { node_id: string; details: object } }
      }
      assert.equal(details.error.node_id, 'inner')
    })
  })

  describe('with an item that fails', () => {
    const odd = fields('body', '{{ item.value }}')
    const items = [{ value: 1 }, {}, { value: 3 }]

    it('stops, and fails the run', async () => {
      const run = runOf({
        nodes: [each({ items }), odd, set('after')],
        edges: [body, edge('each', 'after', 'done')],
      })
      const { end } = await run.next()
      assert.equal(end?.status, 'failed')
      assert.deepEqual([end.error?.code, end.error?.node_id], ['item_failed', 'each'])
      // The nodes of the item: GET /v1/runs/{run_id}?path=each:1
      assert.equal(end.error?.details?.path, 'each:1')
      assert.deepEqual(run.statuses(), {
        each: 'failed',
        'each:0/body': 'completed',
        'each:1/body': 'failed',
      })
      assert.equal(run.iterations.get('each:1')?.status, 'failed')
      assert.equal(run.loops.get('each')?.open, false)
    })

    it('stops, cancels the items in progress, and leaves by `error` where that leads on', async () => {
      const run = runOf({
        nodes: [each({ items: [1, 2], concurrency: 2 }), call('body'), set('sorry')],
        edges: [body, edge('each', 'sorry', 'error')],
        outputs: { index: '{{ nodes.each.error.details.index }}' },
      })
      await run.next()
      run.leave('each:1/body', { status: 'failed', error: { code: 'timeout', message: 'Too late.' } })
      const { end, answer } = await run.next({ type: 'settled', node: 'body', path: 'each:1' })
      assert.deepEqual([end?.status, end?.outputs], ['completed', { index: 1 }])
      assert.equal(answer.commands.length, 1)
      assert.equal(run.iterations.get('each:0')?.status, 'cancelled')
      assert.equal(run.rows.get('each:0/body')?.status, 'cancelled')
    })

    it('tells the workflow that it no longer waits for the nodes of cancelled items', async () => {
      const run = runOf({
        nodes: [each({ items: [1, 2], concurrency: 2 }), call('body'), delay('sorry')],
        edges: [body, edge('each', 'sorry', 'error')],
      })
      await run.next()
      run.leave('each:1/body', { status: 'failed', error: { code: 'timeout', message: 'Too late.' } })
      const { answer } = await run.next({ type: 'settled', node: 'body', path: 'each:1' })
      assert.deepEqual(answer.commands[0], { type: 'cancel', node: 'body', path: 'each:0' })
      // Its result arrives too late.
      const late = await run.next({ type: 'settled', node: 'body', path: 'each:0' })
      assert.deepEqual([late.end, late.answer.commands], [undefined, []])
    })

    it('goes on with the others if it is told to, and has the error by index', async () => {
      const run = runOf({
        nodes: [each({ items, on_item_error: 'continue', output: '{{ nodes.body.output.value }}' }), odd],
        edges: [body],
        outputs: { all: '{{ nodes.each.output }}' },
      })
      const { all } = (await run.next()).end!.outputs as { all: { items: Record<string, unknown>[] } }
      assert.deepEqual({ ...all, items: all.items.length }, { count: 3, succeeded: 2, failed: 1, items: 3 })
      assert.deepEqual(all.items[2], { index: 2, status: 'completed', output: 3 })
      const { error, ...failed } = all.items[1]!
      assert.deepEqual(failed, { index: 1, status: 'failed', output: null, item: items[1] })
      assert.deepEqual(
        [(error as { code: string }).code, (error as { node_id: string }).node_id],
        ['placeholder_error', 'body'],
      )
    })

    it('is one that succeeds where its body handles the error', async () => {
      const run = runOf({
        nodes: [each({ items }), odd, fields('sorry', 'no value')],
        edges: [body, edge('body', 'sorry', 'error')],
        outputs: { values: '{{ nodes.each.output.items | map: "output" }}' },
      })
      assert.deepEqual((await run.next()).end?.outputs, {
        values: [{ value: 1 }, { value: 'no value' }, { value: 3 }],
      })
    })
  })

  it('ends the run by a stop node in its body', async () => {
    const stop = { id: 'body', type: 'stop', config: { outputs: { at: '{{ index }}' } } }
    const run = runOf({ nodes: [each({ items: [1, 2] }), stop], edges: [body] })
    assert.deepEqual((await run.next()).end?.outputs, { at: 0 })
    assert.deepEqual(run.statuses(), { each: 'cancelled', 'each:0/body': 'completed' })
    assert.equal(run.iterations.get('each:0')?.status, 'cancelled')
  })

  it('joins branches within an item', async () => {
    for (const join of ['all', 'any'] as const) {
      const run = runOf({
        nodes: [
          each({ items: [1, 2], concurrency: 2 }),
          set('body'),
          delay('slow'),
          set('quick'),
          set('join', { join }),
        ],
        edges: [
          body,
          edge('body', 'slow'),
          edge('body', 'quick'),
          edge('slow', 'join'),
          edge('quick', 'join'),
        ],
      })
      await run.next()
      const joined = ['each:0/join', 'each:1/join'].map((key) => run.rows.get(key)?.status)
      assert.deepEqual(joined, join === 'any' ? ['completed', 'completed'] : [undefined, undefined])
      await run.next({ type: 'timer', node: 'slow', path: 'each:0' })
      const { end } = await run.next({ type: 'timer', node: 'slow', path: 'each:1' })
      assert.equal(end?.status, 'completed')
    }
  })

  it('issues the commands of its open items again for a new workflow', async () => {
    const run = runOf({
      nodes: [each({ items: [1, 2, 3], concurrency: 2 }), call('body')],
      edges: [body],
    })
    await run.next()
    run.leave('each:0/body', { status: 'completed', handle: 'success', output: 1 })
    const { answer } = await run.segment({ reissue: true })
    assert.deepEqual(
      answer.commands.map((command) => 'path' in command && command.path),
      ['each:1', 'each:2'],
    )
  })

  it('starts nothing while the workflow waits to continue as new', async () => {
    const run = runOf({ nodes: [each({ items: [1, 2] }), call('body')], edges: [body] })
    await run.next()
    run.leave('each:0/body', { status: 'completed', handle: 'success', output: 1 })
    const settled = { type: 'settled', node: 'body', path: 'each:0' } as const
    assert.deepEqual((await run.segment({ happened: [settled], drain: true })).answer.commands, [])
    const { answer } = await run.segment({ reissue: true })
    assert.deepEqual(
      answer.commands.map((command) => 'path' in command && command.path),
      ['each:1'],
    )
  })

  describe('whose results are too large', () => {
    const limits = { valueBytes: 500 }
    const nodes = [each({ items: numbers(10) }), fields('body', 'x'.repeat(60)), set('after')]
    const edges = [body, edge('each', 'after', 'done')]

    it('fails as soon as they are, if something reads them', async () => {
      const run = runOf({ nodes, edges, outputs: results }, { limits })
      const { end } = await run.next()
      assert.equal(end?.error?.code, 'output_too_large')
      assert.match(end!.error!.message, /`output` in the config of each/)
      assert.ok(run.iterations.size < 10)
    })

    it('leaves them out if nothing does', async () => {
      const run = runOf({ nodes, edges }, { limits })
      assert.equal((await run.next()).end?.status, 'completed')
      assert.deepEqual(run.rows.get('each')?.output, { count: 10, succeeded: 10, failed: 0, items: null })
    })
  })

  it('over too many items fails', async () => {
    const { end } = await runOf({
      nodes: [each({ items: numbers(10_001) }), set('body')],
      edges: [body],
    }).next()
    assert.deepEqual(
      [end?.error?.code, end?.error?.message],
      ['too_many_items', 'There are 10001 items: a loop takes 10000 at most.'],
    )
  })

  it('over something that is no list fails, and says how to make a list of one', async () => {
    const over = async (items: string) => {
      const { end } = await runOf({ nodes: [each({ items }), set('body')], edges: [body] }).next()
      return end
    }
    const hint = 'XML and forms have no list of one item; if it is one, `| compact` makes a list of it'
    for (const [items, what] of [
      ['{{ run.id }}', '"019a0000-0000-7000-8000-000000000001"'],
      ['{{ org }}', 'a mapping'],
    ] as const) {
      const end = await over(items)
      assert.deepEqual(
        [end?.error?.code, end?.error?.message],
        ['invalid_config', `items must be a list, but is ${what}: ${hint}`],
      )
    }
    assert.equal((await over('{{ org | compact }}'))?.status, 'completed')
  })

  it('opens few items of loops in loops at the same time, but always goes on', async () => {
    const run = runOf(
      {
        nodes: [
          each({ items: numbers(4), concurrency: 4 }),
          { id: 'inner', type: 'for_each', config: { items: [1, 2, 3], concurrency: 3 } },
          call('call'),
        ],
        edges: [edge('each', 'inner', 'item'), edge('inner', 'call', 'item')],
      },
      { limits: { openItems: 6 } },
    )
    let settled: string[] = []
    let most = 0
    for (let count = 0; count < 20; count++) {
      const happened = settled.map((path) => ({ type: 'settled' as const, node: 'call', path }))
      const { end, answer } = await run.next(...happened)
      if (end) {
        assert.equal(end.status, 'completed')
        assert.equal([...run.rows.keys()].filter((key) => key.endsWith('/call')).length, 12)
        // Each loop may exceed the limit by one.
        assert.ok(most <= 6 + 4, `${most} were open`)
        return
      }
      const open = [...run.iterations.values()].filter((one) => one.settled_segment === null)
      most = Math.max(most, open.length)
      settled = answer.commands.flatMap((command) =>
        'path' in command && command.path ? [command.path] : [],
      )
      for (const path of settled)
        run.leave(`${path}/call`, { status: 'completed', handle: 'success', output: 1 })
    }
    assert.fail('it does not end')
  })

  it('opens fewer items at the same time whose bodies are large, but always goes on', async () => {
    const waits = ['a', 'b', 'c']
    const run = runOf(
      {
        nodes: [
          each({ items: numbers(5), concurrency: 5 }),
          { id: 'inner', type: 'for_each', config: { items: [1, 2], concurrency: 2 } },
          ...waits.map(delay),
        ],
        edges: [edge('each', 'inner', 'item'), ...waits.map((id) => edge('inner', id, 'item'))],
      },
      { limits: { openNodes: 9 } },
    )
    const open = () => [...run.rows.values()].filter(({ status }) => status === 'waiting')
    let most = 0
    let { end } = await run.next()
    while (!end) {
      most = Math.max(most, open().length)
      const fired = open().filter(({ node_id }) => waits.includes(node_id))
      assert.ok(fired.length > 0)
      const happened = fired.map(({ node_id: node, path }) => ({ type: 'timer' as const, node, path }))
      end = (await run.next(...happened)).end
    }
    assert.equal([...run.rows.values()].filter(({ node_id }) => node_id === 'a').length, 10)
    // With that of the outer loop, which is in no item.
    assert.ok(most <= 9 + 1, `${most} were open`)
  })

  it('shows how far it is in the Temporal UI', async () => {
    const run = runOf({ nodes: [each({ items: [1, 2] }), delay('body')], edges: [body] })
    await run.next()
    const { answer } = await run.next({ type: 'timer', node: 'body', path: 'each:0' })
    assert.match(answer.details, /running\*\*, 1 of 1 nodes reached/)
    assert.match(answer.details, /\| each \| for_each \| 1 of 2 items \|/)
  })
})
