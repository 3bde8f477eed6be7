import assert from 'node:assert/strict'
import { compile } from '../../../workflows/authoring/compile.ts'
import { LATER_LANGUAGE, type NodeSpec } from '../../../workflows/language/definition.ts'
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
