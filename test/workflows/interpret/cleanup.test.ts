import assert from 'node:assert/strict'
import { compile } from '../../../workflows/authoring/compile.ts'
import { LATER_LANGUAGE, type NodeSpec, type Program } from '../../../workflows/language/definition.ts'
import { ENGINE } from '../../../workflows/nodes/engine.ts'
import { completeDefinition, type PartialDefinition } from '../../support/definition.ts'
import { edge } from '../../support/nodes.ts'
import { call, delay, runOf, set } from '../../support/run-in-memory.ts'

const note = (value: unknown) => ({ type: 'set_fields', config: { fields: { value } } })
const undoable = (node: NodeSpec): NodeSpec => ({ ...node, undo: note(`{{ run.error.code }} ${node.id}`) })
const fails = (id: string): NodeSpec => set(id, { config: { fields: { value: '{{ 1 | divided_by: 0 }}' } } })
const namesOf = (ran: string[]) => ran.map((one) => one.split(':')[0])

describe('the cleanup of a run, in the interpreter', () => {
  it('undoes light nodes of one segment in the reverse order in which they ran', async () => {
    const nodes = [undoable(set('a')), undoable(set('b')), undoable(set('c')), fails('d')]
    const run = runOf({ nodes, edges: [edge('a', 'b'), edge('b', 'c'), edge('c', 'd')] })
    const { answer, end } = await run.next()
    assert.deepEqual(namesOf(answer.nodes), ['a', 'b', 'c', 'd', 'c_undo', 'b_undo', 'a_undo'])
    assert.deepEqual([end?.status, end?.error?.node_id], ['failed', 'd'])
    assert.deepEqual(run.rows.get('c_undo')!.output, { value: `${end!.error!.code} c` })
  })

  it('undoes branches by the times at which they completed', async () => {
    const nodes = [set('start'), undoable(call('a')), undoable(call('b')), fails('end')]
    const edges = [edge('start', 'a'), edge('start', 'b'), edge('a', 'end'), edge('b', 'end')]
    for (const [first, last] of [
      ['a', 'b'],
      ['b', 'a'],
    ] as const) {
      const run = runOf({ nodes, edges })
      await run.next()
      run.leave(first, { status: 'completed', handle: 'success', ended_at: '2026-01-01T00:00:01.000Z' })
      run.leave(last, { status: 'completed', handle: 'success', ended_at: '2026-01-01T00:00:02.000Z' })
      const { answer } = await run.next({ type: 'settled', node: 'a' }, { type: 'settled', node: 'b' })
      assert.deepEqual(namesOf(answer.nodes).slice(-2), [`${last}_undo`, `${first}_undo`])
    }
  })

  it('undoes a call that has ended, of which the workflow was not told when the run failed', async () => {
    const nodes = [set('start'), undoable(call('a')), call('b')]
    const run = runOf({ nodes, edges: [edge('start', 'a'), edge('start', 'b')] })
    await run.next()
    run.leave('a', { status: 'completed', handle: 'success', output: {} })
    run.leave('b', { status: 'failed', error: { code: 'x', message: 'no' } })
    const { end } = await run.next({ type: 'failed', node: 'b', code: 'x', message: 'no' })
    assert.equal(end?.status, 'failed')
    assert.equal(run.statuses().a_undo, 'completed')
  })

  it('stops the other nodes with a command for each, and replaces the time limit', async () => {
    const nodes = [undoable(call('a')), call('b'), delay('c')]
    const run = runOf({
      nodes: [set('start'), ...nodes],
      edges: nodes.map(({ id }) => edge('start', id)),
      settings: {
        finally: { id: 'last', type: 'api_request', config: { url: 'https://x.test/' } },
        timeout: '2h',
        cleanup_timeout: '10m',
      },
    })
    await run.next()
    run.rows.get('a')!.attempt_token = 'in progress'
    const { answer, ending, end } = await run.next({ type: 'cancelled' })
    assert.deepEqual([ending?.status, end], ['cancelled', undefined])
    assert.deepEqual(answer.commands, [
      { type: 'cancel', node: 'b' },
      { type: 'cancel', node: 'c' },
    ])
    assert.deepEqual([answer.timeout_ms, answer.replaces_timeout], [600_000, true])
    assert.deepEqual(run.statuses(), { start: 'completed', a: 'running', b: 'cancelled', c: 'cancelled' })
  })

  it('awaits a call whose attempt was lost with its worker, which may have been made, and undoes it', async () => {
    const nodes = [undoable(call('a')), undoable(call('b'))]
    const run = runOf({
      nodes: [set('start'), ...nodes],
      edges: nodes.map(({ id }) => edge('start', id)),
    })
    await run.next()
    run.rows.get('a')!.may_have_called = true
    const { ending, answer } = await run.next({ type: 'cancelled' })
    assert.deepEqual(answer.commands, [{ type: 'cancel', node: 'b' }])
    assert.equal(ending?.status, 'cancelled')
    // It is made again, once its turn comes: such a wait is no failed attempt.
    run.rows.get('a')!.next_attempt_at = '2026-01-01T00:01:00.000Z'
    assert.equal((await run.next({ type: 'refresh' })).end, undefined)
    run.leave('a', { status: 'completed', handle: 'success', output: {} })
    const { end } = await run.next({ type: 'settled', node: 'a' })
    assert.equal(end?.status, 'cancelled')
    assert.deepEqual(run.statuses(), {
      start: 'completed',
      a: 'completed',
      b: 'cancelled',
      a_undo: 'completed',
    })
  })

  describe('of a loop that ended early', () => {
    const each = (more: Partial<NodeSpec> = {}, config = {}): NodeSpec => ({
      id: 'each',
      type: 'for_each',
      config: { items: [1, 2, 0, 3], ...config },
      undo: {
        type: 'set_fields',
        config: {
          fields: {
            done: '{{ nodes.each.output.results | reverse }}',
            items: '{{ nodes.each.output.items }}',
            counts: '{{ nodes.each.output.succeeded }} {{ nodes.each.output.failed }} {{ run.error.code }}',
          },
        },
      },
      ...more,
    })
    const divide = set('work', { config: { fields: { value: '{{ 6 | divided_by: item }}' } } })
    const loop = (node = each()) => ({
      nodes: [undoable(set('first')), node, divide],
      edges: [edge('first', 'each'), edge('each', 'work', 'item')],
    })

    it('reads what its items have done before one failed', async () => {
      const run = runOf(loop())
      const { answer, end } = await run.next()
      assert.deepEqual(namesOf(answer.nodes).slice(-3), ['each', 'each_undo', 'first_undo'])
      assert.deepEqual([end?.status, end?.error?.code], ['failed', 'item_failed'])
      const { done, items, counts } = run.rows.get('each_undo')!.output as Record<string, unknown>
      assert.deepEqual([done, counts], [[{ value: 3 }, { value: 6 }], '2 1 item_failed'])
      const [one, two, failed, ...more] = items as Record<string, unknown>[]
      assert.deepEqual(
        [one, two].map((item) => [item!.index, item!.status, item!.output]),
        [
          [0, 'completed', { value: 6 }],
          [1, 'completed', { value: 3 }],
        ],
      )
      assert.deepEqual([failed!.index, failed!.status, failed!.item, more], [2, 'failed', 0, []])
      assert.deepEqual((run.rows.get('each')!.output as { count: number }).count, 4)
    })

    it('reads it in a later segment too, and that an item was cancelled', async () => {
      const nodes = [each({}, { items: ['a', 'b', 'c'], concurrency: 2 }), call('work')]
      const run = runOf({ nodes, edges: [edge('each', 'work', 'item')] })
      await run.next()
      run.leave('each:0/work', { status: 'completed', handle: 'success', output: { n: 1 } })
      await run.next({ type: 'settled', node: 'work', path: 'each:0' })
      const { answer, end } = await run.next({ type: 'cancelled' })
      assert.equal(end?.status, 'cancelled')
      assert.deepEqual(namesOf(answer.nodes).at(-1), 'each_undo')
      const { done, items } = run.rows.get('each_undo')!.output as Record<string, unknown>
      assert.deepEqual(done, [{ n: 1 }])
      assert.deepEqual(items, [
        { index: 0, status: 'completed', output: { n: 1 } },
        { index: 1, status: 'cancelled', output: null, item: 'b' },
        { index: 2, status: 'cancelled', output: null, item: 'c' },
      ])
    })

    it('does not run if no item has completed', async () => {
      const run = runOf(loop(each({}, { items: [0, 1] })))
      await run.next()
      assert.equal(run.rows.has('each_undo'), false)
      assert.equal(run.rows.get('first_undo')!.status, 'completed')
      assert.equal(run.rows.get('each')!.output, null)
    })

    it('runs if the run went on after the loop, and fails later', async () => {
      const { nodes, edges } = loop(each({ on_error: 'continue' }))
      const run = runOf({ nodes: [...nodes, fails('last')], edges: [...edges, edge('each', 'last', 'done')] })
      const { answer } = await run.next()
      assert.deepEqual(namesOf(answer.nodes).slice(-3), ['last', 'each_undo', 'first_undo'])
      // A run that completes undoes nothing.
      const done = runOf({ nodes: [...nodes, set('last')], edges: [...edges, edge('each', 'last', 'done')] })
      assert.equal((await done.next()).end?.status, 'completed')
      assert.equal(done.rows.has('each_undo'), false)
    })

    it('reads the turns of a repeat', async () => {
      const repeat: NodeSpec = {
        id: 'each',
        type: 'repeat',
        config: { until: '{{ index == 9 }}', max_turns: 3, output: '{{ index }}' },
        undo: note('{{ nodes.each.output.results | join: "," }} {{ nodes.each.output.last }}'),
      }
      const run = runOf({ nodes: [repeat, set('work')], edges: [edge('each', 'work', 'turn')] })
      const { end } = await run.next()
      assert.equal(end?.error?.code, 'turn_limit')
      assert.deepEqual(run.rows.get('each_undo')!.output, { value: '0,1,2 2' })
    })

    it('does not run in a program of before, whose undo was written for a loop that completed', async () => {
      const stored = ({ nodes }: Program) => {
        delete nodes.each!.undone_early
      }
      const failed = runOf(loop(), { stored })
      assert.equal((await failed.next()).end?.status, 'failed')
      assert.deepEqual([failed.rows.has('each_undo'), failed.rows.get('each')!.output], [false, null])
      assert.equal(failed.rows.get('first_undo')!.status, 'completed')
      const { nodes, edges } = loop(each({}, { items: [1, 2] }))
      const later = { nodes: [...nodes, fails('last')], edges: [...edges, edge('each', 'last', 'done')] }
      const completed = runOf(later, { stored })
      await completed.next()
      assert.equal(completed.rows.get('each_undo')!.status, 'completed')
    })

    it('needs an engine of its own', () => {
      assert.equal(compile(completeDefinition(loop())).engine, LATER_LANGUAGE.loop_undo)
    })
  })

  it('needs the engine that introduced it, and is absent from other programs', () => {
    const program = (definition: PartialDefinition) => compile(completeDefinition(definition))
    const plain = program({ nodes: [set('a')] })
    assert.deepEqual([plain.engine, plain.cleanup], [1, undefined])
    const others = [
      { nodes: [undoable(set('a'))] },
      { nodes: [set('a')], settings: { finally: note(1) } },
      { nodes: [set('a')], settings: { on_cancel: [note(1), note(2)] } },
    ]
    for (const one of others) assert.equal(program(one).engine, LATER_LANGUAGE.cleanup)
    assert.ok(ENGINE >= LATER_LANGUAGE.cleanup)
  })
})
