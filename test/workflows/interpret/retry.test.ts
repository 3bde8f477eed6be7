import assert from 'node:assert/strict'
import { compile } from '../../../workflows/authoring/compile.ts'
import {
  failedNode,
  prepareFrame,
  prepareRetry,
  type RetriedNode,
  renewedNodes,
} from '../../../workflows/interpret/retry.ts'
import type { Edge } from '../../../workflows/language/definition.ts'
import { completeDefinition } from '../../support/definition.ts'
import { edge, set } from '../../support/nodes.ts'

const program = (ids: string[], edges: Edge[]) =>
  compile({
    name: 'Test',
    trigger: { type: 'manual' },
    inputs: {},
    nodes: ids.map((id) => ({ id, type: id === 'if' ? 'condition' : 'set_fields', config: {} })),
    edges,
    outputs: {},
    settings: {},
  })
const row = (node_id: string, more: Partial<RetriedNode> = {}): RetriedNode => ({
  path: '',
  node_id,
  node_type: 'set_fields',
  status: 'completed',
  handle: 'success',
  ...more,
})

describe('the prepared of a retry', () => {
  const diamond = program(
    ['a', 'b', 'c', 'd'],
    [edge('a', 'b'), edge('a', 'c'), edge('b', 'd'), edge('c', 'd')],
  )

  it('reuses other branches that have settled, and runs what was cancelled', () => {
    const failed = row('b', { status: 'failed', handle: null })
    assert.deepEqual(prepareRetry(diamond, [row('a'), failed, row('c')], { from: 'b' }), {
      reused: ['a', 'c'],
      resumed: [],
      again: ['b', 'd'],
    })
    const cancelled = row('c', { status: 'cancelled', handle: null })
    assert.deepEqual(prepareRetry(diamond, [row('a'), failed, cancelled], { from: 'b' }), {
      reused: ['a'],
      resumed: [],
      again: ['b', 'c', 'd'],
    })
  })

  it('refuses a node that was not reached', () => {
    const choice = program(['if', 'yes', 'no'], [edge('if', 'yes', 'true'), edge('if', 'no', 'false')])
    const rows = [
      row('if', { node_type: 'condition', handle: 'true' }),
      row('yes', { status: 'failed', handle: null }),
      row('no', { status: 'skipped', handle: null }),
    ]
    assert.match(String(prepareRetry(choice, rows, { from: 'no' })), /did not reach no/)
    assert.deepEqual(prepareRetry(choice, rows, { from: 'yes' }), {
      reused: ['if', 'no'],
      resumed: [],
      again: ['yes'],
    })
  })

  it('runs a node again whose type has changed, and what comes after a new node', () => {
    const rows = [row('a', { node_type: 'delay' }), row('b', { status: 'failed', handle: null }), row('c')]
    assert.match(String(prepareRetry(diamond, rows, { from: 'b' })), /start with a/)
    assert.deepEqual(prepareRetry(diamond, rows, { from: 'a' }), {
      reused: [],
      resumed: [],
      again: ['a', 'b', 'c', 'd'],
    })
  })

  describe('with loops', () => {
    const looped = compile({
      name: 'Test',
      trigger: { type: 'manual' },
      inputs: {},
      outputs: {},
      settings: {},
      nodes: ['list', 'each', 'x', 'y', 'last'].map((id) => ({
        id,
        type: id === 'each' ? 'for_each' : 'set_fields',
        config: id === 'each' ? { items: [1] } : { fields: {} },
      })),
      edges: [edge('list', 'each'), edge('each', 'x', 'item'), edge('x', 'y'), edge('each', 'last', 'done')],
    })
    const broken = row('each', { node_type: 'for_each', status: 'failed', handle: null })

    it('goes on with a loop that failed, and runs all its items again if it is named', () => {
      const rows = [row('list'), broken]
      const prepared = { reused: ['list'], resumed: ['each'], again: ['each', 'x', 'y', 'last'] }
      assert.deepEqual(prepareRetry(looped, rows, { from: 'each' }), prepared)
      assert.deepEqual(prepareRetry(looped, rows, { from: 'each', again: true }), {
        ...prepared,
        resumed: [],
      })
    })

    it('does not go on with a loop whose list may change', () => {
      const rows = [row('list'), broken]
      assert.deepEqual(prepareRetry(looped, rows, { from: 'list' }), {
        reused: [],
        resumed: [],
        again: ['list', 'each', 'x', 'y', 'last'],
      })
    })

    it('reuses in an item what has settled, but not from the node on that is named', () => {
      const rows = new Map([
        ['x', row('x')],
        ['y', row('y', { status: 'failed', handle: null })],
      ])
      assert.deepEqual(prepareFrame(looped, rows, { loop: 'each', from: [] }), { reused: ['x'], resumed: [] })
      assert.deepEqual(prepareFrame(looped, rows, { loop: 'each', from: ['x'] }), { reused: [], resumed: [] })
    })
  })

  it('gives new keys to undone nodes and those after them, but not to those whose undo failed', () => {
    const undo = { type: 'set_fields', config: {} }
    const undoable = compile(
      completeDefinition({
        nodes: ['a', 'b', 'c', 'd'].map((id) => ({ ...set(id, id), ...(id !== 'd' && { undo }) })),
        edges: [edge('a', 'b'), edge('a', 'c'), edge('b', 'd'), edge('c', 'd')],
      }),
    )
    const rows = [row('a'), row('b'), row('c'), row('d', { status: 'failed', handle: null })]
    const undone = row('b_undo', { undoes: 'b' })
    const failed = row('c_undo', { undoes: 'c', status: 'failed', handle: null })
    assert.deepEqual(renewedNodes(undoable, [...rows, undone, failed]), ['b', 'd'])
    assert.deepEqual(renewedNodes(undoable, [...rows, row('a_undo', { undoes: 'a' })]), ['a', 'd'])
    assert.deepEqual(renewedNodes(undoable, rows), [])
  })

  it('lets a loop that ended early keep its key if its undo failed, and gives new ones to its body if not', () => {
    const undo = { type: 'set_fields', config: {} }
    const undoable = compile(
      completeDefinition({
        nodes: [
          { ...set('a'), undo },
          { id: 'each', type: 'for_each', config: { items: [1] }, undo },
          set('x'),
        ],
        edges: [edge('a', 'each'), edge('each', 'x', 'item')],
      }),
    )
    const rows = [
      row('a'),
      row('each', { node_type: 'for_each', status: 'failed', handle: null }),
      row('a_undo', { undoes: 'a' }),
    ]
    const stands = row('each_undo', { undoes: 'each', status: 'failed', handle: null })
    assert.deepEqual(renewedNodes(undoable, [...rows, stands]), ['a'])
    const undone = row('each_undo', { undoes: 'each' })
    assert.deepEqual(renewedNodes(undoable, [...rows, undone]), ['a', 'each', 'x'])
    // Nothing was to be undone.
    assert.deepEqual(renewedNodes(undoable, rows), ['a', 'each', 'x'])
  })

  it('starts with the node that failed the run', () => {
    assert.equal(failedNode({ code: 'x', message: 'x', node_id: 'b' }, [row('b')]), 'b')
    assert.equal(failedNode({ code: 'timeout', message: 'x' }, [row('b')]), null)
  })
})
