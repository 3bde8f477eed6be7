import assert from 'node:assert/strict'
import type { SegmentAnswer } from '../../../workflows/bundle/protocol.ts'
import type { SegmentResult } from '../../../workflows/interpret/segment.ts'
import type { NodeSpec } from '../../../workflows/language/definition.ts'
import { edge } from '../../support/nodes.ts'
import { ID } from '../../support/run-facts.ts'
import { call, delay, runOf, set } from '../../support/run-in-memory.ts'

const chain = (ids: string[]) => ({
  nodes: ids.map((id) => set(id)),
  edges: ids.slice(1).map((id, index) => edge(ids[index]!, id)),
})

describe('a segment', () => {
  it('runs all ready nodes, and ends the run with its outputs', async () => {
    const run = runOf({ ...chain(['a', 'b']), outputs: { last: '{{ nodes.b.output.value }}' } })
    const { answer, end } = await run.next()
    assert.deepEqual(end, { status: 'completed', outputs: { last: 'b' }, error: null })
    assert.deepEqual(answer.commands, [{ type: 'end', status: 'completed' }])
    assert.deepEqual(answer.nodes, ['a: completed', 'b: completed'])
  })

  it('leaves ready nodes to the next segment at its node limit', async () => {
    const run = runOf(chain(['a', 'b', 'c']), { limits: { segmentNodes: 2 } })
    const first = await run.next()
    assert.deepEqual(first.answer.commands, [{ type: 'continue' }])
    assert.deepEqual([run.statuses(), first.end], [{ a: 'completed', b: 'completed' }, undefined])
    const second = await run.next()
    assert.deepEqual([second.answer.nodes, second.end?.status], [['c: completed'], 'completed'])
  })

  it('leaves ready nodes to the next segment at its time limit', async () => {
    const run = runOf(chain(['a', 'b', 'c', 'd']), { limits: { segmentMs: 500 }, msPerNode: 300 })
    assert.deepEqual((await run.next()).answer.commands, [{ type: 'continue' }])
    assert.deepEqual(Object.keys(run.statuses()), ['a', 'b'])
    assert.equal((await run.next()).end?.status, 'completed')
  })

  it('leaves ready nodes to the next segment when what it writes is large', async () => {
    const run = runOf(chain(['a', 'b', 'c', 'd']), { limits: { segmentCharacters: 50 } })
    // Input and output of a node are some 20 characters each.
    assert.deepEqual((await run.next()).answer.commands, [{ type: 'continue' }])
    assert.deepEqual(Object.keys(run.statuses()), ['a', 'b'])
    assert.equal((await run.next()).end?.status, 'completed')
  })

  it('does not change the rows that it was given', async () => {
    const run = runOf({ nodes: [delay('wait')] })
    await run.next()
    const [row] = [...run.rows.values()]
    const before = structuredClone(row)
    await run.next({ type: 'timer', node: 'wait' })
    assert.deepEqual(row, before)
    assert.equal(run.rows.get('wait')?.status, 'completed')
  })

  it('skips a node whose `when` is false and continues after it; skips nodes with dead edges only', async () => {
    const run = runOf({
      nodes: [
        { id: 'which', type: 'switch', config: { value: 1, cases: { one: 1, two: 2 } } },
        set('one', { when: '{{ inputs.missing | default: false }}' }),
        set('two'),
        set('after'),
      ],
      edges: [edge('which', 'one', 'one'), edge('which', 'two', 'two'), edge('one', 'after')],
    })
    const { end } = await run.next()
    assert.equal(end?.status, 'completed')
    const expected = { which: 'completed', one: 'skipped', two: 'skipped', after: 'completed' }
    assert.deepEqual(run.statuses(), expected)
    assert.deepEqual([run.rows.get('one')?.handle, run.rows.get('two')?.handle], ['success', null])
  })

  it('fails a node whose `when` cannot be rendered, and the run with it', async () => {
    const run = runOf({ nodes: [set('a', { when: '{{ inputs.missing }}' })] })
    const { end } = await run.next()
    assert.deepEqual(
      [end?.status, end?.error?.code, end?.error?.node_id],
      ['failed', 'placeholder_error', 'a'],
    )
  })

  it('requests a timer and continues once when it fires', async () => {
    const run = runOf({ nodes: [delay('wait'), set('then')], edges: [edge('wait', 'then')] })
    const { answer } = await run.next()
    assert.deepEqual(answer.commands, [{ type: 'timer', node: 'wait', title: 'wait', ms: 3_600_000 }])
    assert.equal(run.rows.get('wait')?.status, 'waiting')
    const { answer: last, end } = await run.next(
      { type: 'timer', node: 'wait' },
      { type: 'timer', node: 'wait' },
    )
    assert.deepEqual([last.nodes, end?.status], [['wait: completed', 'then: completed'], 'completed'])
  })

  it('starts an external node, and reads its outcome from its row', async () => {
    const run = runOf({ nodes: [call('call'), set('then')], edges: [edge('call', 'then')] })
    const [command] = (await run.next()).answer.commands
    assert.deepEqual(
      [command?.type, command?.type === 'external' && [command.node_type, command.retry.max_attempts]],
      ['external', ['api_request', 3]],
    )
    run.leave('call', { status: 'completed', handle: 'success', output: { status: 200 } })
    assert.equal((await run.next({ type: 'settled', node: 'call' })).end?.status, 'completed')
  })

  it('does not continue after an external node until the workflow reports its end', async () => {
    const run = runOf({
      nodes: [set('start'), call('call'), delay('wait'), set('then')],
      edges: [edge('start', 'call'), edge('start', 'wait'), edge('call', 'then')],
    })
    await run.next()
    run.leave('call', { status: 'completed', handle: 'success' })
    const { answer, end } = await run.next({ type: 'timer', node: 'wait' })
    assert.deepEqual([answer.commands, answer.nodes, end], [[], ['wait: completed'], undefined])
    assert.equal((await run.next({ type: 'settled', node: 'call' })).end?.status, 'completed')
  })

  it('starts an external node again if a restored database has lost the result that its activity wrote', async () => {
    const run = runOf({ nodes: [call('call'), set('then')], edges: [edge('call', 'then')] })
    const first = (await run.next()).answer.commands
    const { answer, end } = await run.next({ type: 'settled', node: 'call' })
    assert.deepEqual([answer.commands, end], [first, undefined])
    run.leave('call', { status: 'completed', handle: 'success' })
    assert.equal((await run.next({ type: 'settled', node: 'call' })).end?.status, 'completed')
  })

  it('uses the reported error of an activity that wrote no row', async () => {
    const run = runOf({ nodes: [call('call'), set('sorry')], edges: [edge('call', 'sorry', 'error')] })
    await run.next()
    const failed = { type: 'failed', node: 'call', code: 'activity_failed', message: 'Lost.' } as const
    const { end } = await run.next(failed)
    assert.equal(end?.status, 'completed')
    const row = run.rows.get('call')
    assert.deepEqual([row?.status, row?.handle, row?.error?.message], ['failed', 'error', 'Lost.'])
  })

  const open = {
    nodes: [set('start'), delay('wait'), call('call')],
    edges: [edge('start', 'wait'), edge('start', 'call')],
  }

  it('cancels open nodes when the run is cancelled, and starts no more', async () => {
    const run = runOf(open)
    await run.next()
    const { answer, end } = await run.next({ type: 'cancelled' }, { type: 'timer', node: 'wait' })
    assert.deepEqual(answer.commands, [{ type: 'end', status: 'cancelled' }])
    assert.equal(end?.error?.code, 'cancelled')
    assert.deepEqual(run.statuses(), { start: 'completed', wait: 'completed', call: 'cancelled' })
  })

  it('fails the run at its timeout, which only the first answer holds', async () => {
    const run = runOf({ ...open, settings: { timeout: '2h' } })
    assert.equal((await run.next()).answer.timeout_ms, 7_200_000)
    assert.equal((await run.next({ type: 'timer', node: 'wait' })).answer.timeout_ms, undefined)
    const { end } = await run.next({ type: 'timeout' })
    assert.deepEqual([end?.status, end?.error?.code], ['failed', 'timeout'])
    assert.deepEqual(run.statuses(), { start: 'completed', wait: 'completed', call: 'cancelled' })
  })

  for (const [status, code] of [
    ['completed', undefined],
    ['failed', 'stopped'],
  ] as const)
    it(`ends the run as ${status} by a stop node, and cancels open nodes`, async () => {
      const stop: NodeSpec = { id: 'stop', type: 'stop', config: { status, message: 'Enough.' } }
      const run = runOf({
        nodes: [set('start'), delay('wait'), stop, set('never')],
        edges: [edge('start', 'wait'), edge('start', 'stop'), edge('wait', 'never')],
      })
      const { answer, end } = await run.next()
      const error = status === 'failed' ? { error: { code, message: 'Enough.' } } : {}
      assert.deepEqual(answer.commands, [{ type: 'end', status, ...error }])
      assert.deepEqual([end?.status, end?.error?.code], [status, code])
      assert.deepEqual(run.statuses(), { start: 'completed', wait: 'cancelled', stop: 'completed' })
    })

  it('reads null of nodes that were not reached, in outputs as in a config', async () => {
    const texts = {
      first: '{{ nodes.yes.output.value | default: nodes.no.output.value }}',
      second: '{{ nodes.no.output.value | default: nodes.yes.output.value }}',
      neither: "{{ nodes.no.output.value | default: nodes.never.output.value | default: 'x' }}",
      equal: "{{ nodes.no.output.value == 'no' }}",
      choice: "{{ nodes.no.output.value == nil ? 'fine' : 'refused' }}",
      either: "{{ nodes.no.output.value == 'no' or nodes.yes.output.value == 'yes' }}",
      text: 'Result: {{ nodes.no.output.value }} {{ nodes.yes.output.value }}',
      status: '{{ nodes.no.status }}',
      alone: '{{ nodes.no.output.value }}',
    }
    const expected = {
      first: 'yes',
      second: 'yes',
      neither: 'x',
      equal: false,
      choice: 'fine',
      either: true,
      text: 'Result:  yes',
      status: 'skipped',
      alone: null,
    }
    const nodes: NodeSpec[] = [
      { id: 'which', type: 'condition', config: { conditions: [{ left: 1, operator: 'eq', right: 1 }] } },
      set('yes'),
      set('no'),
      set('never', { when: '{{ false }}' }),
      { id: 'after', type: 'set_fields', config: { fields: texts } },
    ]
    const edges = [
      edge('which', 'yes', 'true'),
      edge('which', 'no', 'false'),
      edge('no', 'never'),
      edge('yes', 'after'),
      edge('never', 'after'),
    ]
    const run = runOf({ nodes, edges, outputs: texts })
    assert.deepEqual((await run.next()).end?.outputs, expected)
    assert.deepEqual(run.rows.get('after')?.output, expected)

    // A stop node can end a run before a node has a row.
    const early: NodeSpec[] = [set('a'), { id: 'stop', type: 'stop', config: {} }, set('yes'), set('no')]
    const stopped = runOf({
      nodes: [...early, set('never')],
      edges: [edge('a', 'stop'), edge('a', 'no'), edge('no', 'yes'), edge('yes', 'never')],
      outputs: { value: "{{ nodes.yes.output.value | default: nodes.never.output.value | default: 'x' }}" },
    })
    assert.deepEqual((await stopped.next()).end?.outputs, { value: 'x' })
  })

  it('ends the run with the outputs of a stop node instead of those of the workflow', async () => {
    const nodes = (config: object): NodeSpec[] => [
      set('a'),
      { id: 'stop', type: 'stop', config: { outputs: { found: '{{ nodes.a.output.value }}' }, ...config } },
    ]
    const rest = { edges: [edge('a', 'stop')], outputs: { never: '{{ run.missing }}' } }
    const done = (await runOf({ nodes: nodes({}), ...rest }).next()).end
    assert.deepEqual(done, { status: 'completed', outputs: { found: 'a' }, error: null })
    const failed = (await runOf({ nodes: nodes({ status: 'failed' }), ...rest }).next()).end
    assert.deepEqual([failed?.status, failed?.outputs], ['failed', { found: 'a' }])
  })

  describe('at a join', () => {
    const joined = (join: 'all' | 'any') =>
      runOf({
        nodes: [set('start'), delay('slow'), set('fast'), set('join', { join }), set('after')],
        edges: [
          edge('start', 'slow'),
          edge('start', 'fast'),
          edge('slow', 'join'),
          edge('fast', 'join'),
          edge('join', 'after'),
        ],
      })

    it('waits for every branch by default', async () => {
      const run = joined('all')
      await run.next()
      assert.deepEqual(run.statuses(), { start: 'completed', slow: 'waiting', fast: 'completed' })
      assert.equal((await run.next({ type: 'timer', node: 'slow' })).end?.status, 'completed')
      assert.equal(run.rows.get('join')?.segment, 1)
    })

    it('with any starts at the first branch, lets the others go on, and starts once', async () => {
      const run = joined('any')
      const first = await run.next()
      assert.equal(first.end, undefined, 'the slow branch goes on')
      const expected = {
        start: 'completed',
        slow: 'waiting',
        fast: 'completed',
        join: 'completed',
        after: 'completed',
      }
      assert.deepEqual(run.statuses(), expected)
      const last = await run.next({ type: 'timer', node: 'slow' })
      assert.deepEqual([last.answer.nodes, last.end?.status], [['slow: completed'], 'completed'])
      assert.equal(run.rows.get('join')?.segment, 0)
    })

    for (const join of ['all', 'any'] as const)
      it(`with ${join} ignores dead branches, and is skipped if all are dead`, async () => {
        const which: NodeSpec = {
          id: 'which',
          type: 'switch',
          config: { value: 1, cases: { one: 1, two: 2 } },
        }
        const run = runOf({
          nodes: [which, set('one'), set('two'), set('some', { join }), set('none', { join }), set('after')],
          edges: [
            edge('which', 'one', 'one'),
            edge('which', 'two', 'two'),
            edge('one', 'some'),
            edge('two', 'some'),
            edge('two', 'none'),
            edge('which', 'none', 'default'),
            edge('none', 'after'),
          ],
        })
        assert.equal((await run.next()).end?.status, 'completed')
        const { some, none, after } = run.statuses()
        assert.deepEqual([some, none, after], ['completed', 'skipped', 'skipped'])
      })

    it('with any starts by an error handle, and by a node whose `when` is false', async () => {
      const run = runOf({
        nodes: [
          set('start'),
          set('bad', { config: { fields: { x: '{{ inputs.missing }}' } } }),
          set('off', { when: 'false' }),
          delay('slow'),
          set('failed', { join: 'any' }),
          set('passed', { join: 'any' }),
        ],
        edges: [
          edge('start', 'bad'),
          edge('start', 'off'),
          edge('start', 'slow'),
          edge('bad', 'failed', 'error'),
          edge('slow', 'failed'),
          edge('off', 'passed'),
          edge('slow', 'passed'),
        ],
      })
      await run.next()
      const { bad, off, failed, passed } = run.statuses()
      assert.deepEqual([bad, off, failed, passed], ['failed', 'skipped', 'completed', 'completed'])
    })
  })

  it('fails the run if its outputs cannot be rendered or are too large', async () => {
    const limits = { valueBytes: 100 }
    for (const [output, code] of [
      ['{{ nodes.a.output.missing }}', 'placeholder_error'],
      ['x'.repeat(200), 'output_too_large'],
    ] as const) {
      const { end } = await runOf({ nodes: [set('a')], outputs: { output } }, { limits }).next()
      assert.deepEqual([end?.status, end?.error?.code], ['failed', code])
    }
  })

  it('bounds the size of the history', async () => {
    const nodes = Array.from({ length: 30 }, (_, n) => ({ ...delay(`n${n}`), title: 'x'.repeat(200) }))
    const edges = nodes.slice(1).map(({ id }) => edge('start', id))
    const run = runOf(
      { nodes: [set('start'), ...nodes.slice(1)], edges },
      { limits: { detailsCharacters: 500 } },
    )
    const { details } = (await run.next()).answer
    assert.ok(details.length <= 500 && details.length > 250, String(details.length))
  })

  describe('with many calls', () => {
    const calls = (count: number) => Array.from({ length: count }, (_, n) => call(`c${n}`))
    const commandsOf = ({ answer }: SegmentResult) => answer.commands.map(({ type }) => type)
    const settle = (run: ReturnType<typeof runOf>, ...ids: string[]) => {
      for (const id of ids) run.leave(id, { status: 'completed', handle: 'success' })
      return run.next(...ids.map((node) => ({ type: 'settled' as const, node })))
    }
    const again = ({ commands }: SegmentAnswer) => {
      const last = commands.at(-1)!
      return last.type === 'continue' && last.after !== undefined ? { after: last.after } : {}
    }
    const fan = (nodes: NodeSpec[]) => ({
      nodes: [set('start'), ...nodes],
      edges: nodes.map(({ id }) => edge('start', id)),
    })

    it('has no more in progress than the limit; light nodes do not wait behind the others', async () => {
      const run = runOf(fan([...calls(4), set('light')]), { limits: { openCalls: 2 } })
      assert.deepEqual(commandsOf(await run.next()), ['external', 'external'])
      assert.deepEqual(run.statuses(), {
        start: 'completed',
        c0: 'running',
        c1: 'running',
        light: 'completed',
      })
      assert.deepEqual(commandsOf(await settle(run, 'c1')), ['external'])
      assert.deepEqual(commandsOf(await settle(run, 'c0', 'c2')), ['external'])
      assert.equal((await settle(run, 'c3')).end?.status, 'completed')
    })

    it('starts those that wait when a failed item makes room', async () => {
      const bad = { id: 'bad', type: 'set_fields', config: { fields: { x: '{{ item.missing }}' } } }
      const run = runOf(
        {
          nodes: [
            {
              id: 'each',
              type: 'for_each',
              config: { items: [{}], concurrency: 1, on_item_error: 'continue' },
            },
            delay('pause'),
            bad,
            { ...call('inner'), join: 'any' },
            call('outer'),
          ],
          edges: [
            edge('each', 'pause', 'item'),
            edge('each', 'inner', 'item'),
            edge('pause', 'bad'),
            edge('each', 'outer', 'done'),
          ],
        },
        { limits: { openCalls: 1 } },
      )
      assert.deepEqual(commandsOf(await run.next()), ['timer', 'external'])
      const { answer } = await run.next({ type: 'timer', node: 'pause', path: 'each:0' })
      assert.deepEqual(answer.nodes.slice(1), [
        'each:0/bad: failed',
        'each:0/inner: cancelled',
        'each: completed',
        'outer: started',
      ])
    })

    it('issues the commands of open nodes again in answers of bounded size, and starts no node before', async () => {
      const nodes = [...calls(3), ...['d0', 'd1', 'd2', 'd3'].map(delay)]
      const run = runOf(fan(nodes), { limits: { commandBytes: 250 } })
      const issued = async (segment: Promise<SegmentResult>) => {
        const all: string[] = []
        for (let { answer } = await segment; ; { answer } = await run.segment(again(answer))) {
          const size = answer.commands.reduce((sum, one) => sum + JSON.stringify(one).length, 0)
          assert.ok(size < 600, `${size} characters`)
          all.push(...answer.commands.flatMap((one) => ('node' in one ? one.node : [])))
          if (answer.commands.at(-1)?.type !== 'continue') return all
        }
      }
      const ids = nodes.map(({ id }) => id)
      assert.deepEqual((await issued(run.next())).sort(), ids)
      assert.deepEqual(await issued(run.segment({ reissue: true })), ids)
    })

    it('issues the command of a call in progress again although a pause is requested, and pauses once it has ended', async () => {
      const run = runOf({ nodes: [call('slow')] })
      await run.next()
      run.leave('slow', { attempt_token: ID, ended_at: null })
      const held = await run.segment({ hold: true, after: '' })
      assert.deepEqual([held.paused, commandsOf(held)], [false, ['external']])
      assert.deepEqual(commandsOf(await run.segment({ hold: true })), [])
      run.leave('slow', { attempt_token: null, ended_at: null })
      assert.equal((await run.segment({ hold: true, after: '' })).paused, true)
    })

    it('has no more in an answer than fits, also if thousands of nodes of items are cancelled at once', async () => {
      const long = (name: string) => name.padEnd(64, '_')
      const [each, bad] = [long('each'), long('bad')]
      const waiting = Array.from({ length: 60 }, (_, n) => ({
        ...delay(long(`d${n}_`)),
        title: '語'.repeat(200),
      }))
      const run = runOf({
        nodes: [
          {
            id: each,
            type: 'for_each',
            config: { items: Array(50).fill({}), concurrency: 50, on_item_error: 'stop' },
            on_error: 'continue',
          },
          { ...delay(bad), config: { for: '1m' } },
          { id: 'fails', type: 'set_fields', config: { fields: { x: '{{ item.missing }}' } } },
          ...waiting,
          delay('next'),
        ],
        edges: [
          ...[bad, ...waiting.map(({ id }) => id)].map((id) => edge(each, id, 'item')),
          edge(bad, 'fails'),
          edge(each, 'next', 'done'),
        ],
      })
      let most = 0
      let started = 0
      const through = async (first: Promise<SegmentResult>) => {
        for (let { answer } = await first; ; { answer } = await run.segment(again(answer))) {
          most = Math.max(most, Buffer.byteLength(JSON.stringify(answer)))
          started += answer.commands.filter(({ type }) => type === 'timer').length
          if (answer.commands.at(-1)?.type !== 'continue') return answer
        }
      }
      await through(run.next())
      assert.equal(started, 50 * 61)
      const failed = await run.next({ type: 'timer', node: bad, path: `${each}:0` })
      // The workflow cancels all that the commands from here on do not name.
      assert.notEqual(failed.answer.segment, undefined)
      started = 0
      await through(Promise.resolve(failed))
      assert.deepEqual([started, run.statuses().next], [1, 'waiting'])
      assert.ok(most < 200_000, `${most} bytes`)
    })
  })
})
