import assert from 'node:assert/strict'
import { parse } from 'yaml'
import { insertionOf, insertNode } from '../../../api/console/workflows/insert-node.ts'
import { snippetOf } from '../../../api/console/workflows/snippet.ts'
import { nodeTypes } from '../../../workflows/nodes/index.ts'

describe('snippets of nodes', () => {
  it('are the example of each node type, in a spec', () => {
    for (const { type, example } of Object.values(nodeTypes)) {
      const spec = insertNode(
        'name: x\nnodes:\n  first:\n    type: y\n',
        snippetOf({ node_type: type, example }),
      )
      assert.deepEqual(parse(spec).nodes, {
        first: { type: 'y' },
        [type]: { type, config: JSON.parse(JSON.stringify(example.config)) },
      })
    }
  })

  it('get an id that the spec does not have', () => {
    const node = { node_type: 'delay', example: { config: { for: '1h' } } }
    const once = insertNode('name: x\n', snippetOf(node))
    const twice = insertNode(once, snippetOf(node, once))
    assert.deepEqual(Object.keys(parse(twice).nodes), ['delay', 'delay_2'])
  })

  it('stand at the end of the nodes, before what follows and its comments', () => {
    const spec = 'name: x\nnodes: # all\n  a:\n    type: y\n\noutputs: {}\n'
    const whole = insertNode(spec, '  b:\n    type: z\n')
    assert.equal(whole, 'name: x\nnodes: # all\n  a:\n    type: y\n  b:\n    type: z\n\noutputs: {}\n')
  })

  it('stand below the node of the cursor, and never within another one', () => {
    const spec = 'name: x\nnodes:\n  a:\n    type: y\n\n  # About b.\n  b:\n    type: z\n'
    const at = (line: number) => {
      const { at, text } = insertionOf(spec, '  c: {}\n', line)
      return Object.keys(parse(spec.slice(0, at) + text + spec.slice(at)).nodes)
    }
    assert.deepEqual(at(2), ['a', 'c', 'b'])
    assert.deepEqual(at(3), ['a', 'c', 'b'])
    assert.deepEqual(at(7), ['a', 'b', 'c'])
    assert.deepEqual(at(0), ['a', 'b', 'c'])
  })

  it('begin the nodes of a spec that has none', () => {
    assert.equal(insertNode('', '  b: {}\n'), 'nodes:\n  b: {}\n')
    assert.equal(insertNode('name: x', '  b: {}\n'), 'name: x\nnodes:\n  b: {}\n')
  })
})
