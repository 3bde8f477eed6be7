import assert from 'node:assert/strict'
import { compile } from '../../../workflows/definition/compile.ts'
import type { Edge } from '../../../workflows/definition/types.ts'
import { failedNode, planRetry, type RetriedNode } from '../../../workflows/interpret/retry.ts'
import { edge } from '../../support/nodes.ts'

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
  ...{ path: '', node_id, node_type: 'set_fields', status: 'completed', handle: 'success' },
  ...more,
})

describe('the plan of a retry', () => {
  const diamond = program(
    ['a', 'b', 'c', 'd'],
    [edge('a', 'b'), edge('a', 'c'), edge('b', 'd'), edge('c', 'd')],
  )

  it('reuses other branches that have settled, and runs what was cancelled', () => {
    const failed = row('b', { status: 'failed', handle: null })
    assert.deepEqual(planRetry(diamond, [row('a'), failed, row('c')], 'b'), {
      reused: ['a', 'c'],
      again: ['b', 'd'],
    })
    const cancelled = row('c', { status: 'cancelled', handle: null })
    assert.deepEqual(planRetry(diamond, [row('a'), failed, cancelled], 'b'), {
      reused: ['a'],
      again: ['b', 'c', 'd'],
    })
  })

  it('refuses a node that was not reached, or inside a loop', () => {
    const choice = program(['if', 'yes', 'no'], [edge('if', 'yes', 'true'), edge('if', 'no', 'false')])
    const rows = [
      row('if', { node_type: 'condition', handle: 'true' }),
      row('yes', { status: 'failed', handle: null }),
      row('no', { status: 'skipped', handle: null }),
    ]
    assert.match(String(planRetry(choice, rows, 'no')), /did not reach no/)
    assert.deepEqual(planRetry(choice, rows, 'yes'), { reused: ['if', 'no'], again: ['yes'] })
    assert.match(String(planRetry(choice, [...rows, row('x', { path: 'each:3' })], 'x')), /inside a loop/)
  })

  it('runs a node again whose type has changed, and what comes after a new node', () => {
    const rows = [row('a', { node_type: 'delay' }), row('b', { status: 'failed', handle: null }), row('c')]
    assert.match(String(planRetry(diamond, rows, 'b')), /start with a/)
    assert.deepEqual(planRetry(diamond, rows, 'a'), { reused: [], again: ['a', 'b', 'c', 'd'] })
  })

  it('starts with the node that failed the run', () => {
    assert.equal(failedNode({ code: 'x', message: 'x', node_id: 'b' }, [row('b')]), 'b')
    assert.equal(failedNode({ code: 'timeout', message: 'x' }, [row('b')]), null)
  })
})
