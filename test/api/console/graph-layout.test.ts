import assert from 'node:assert/strict'
import fc from 'fast-check'
import { BOX, layoutOf } from '../../../api/console/workflows/graph-layout.ts'

const edge = (from: string, to: string) => ({ from, to })

describe('the layout of a graph', () => {
  it('puts a node below all that lead to it', () => {
    const { boxes, lines } = layoutOf({
      nodes: ['a', 'b', 'c', 'd'],
      edges: [edge('a', 'b'), edge('b', 'c'), edge('a', 'd'), edge('c', 'd')],
    })
    const y = (id: string) => boxes.get(id)!.y
    assert.ok(y('a') < y('b') && y('b') < y('c') && y('c') < y('d'))
    const long = lines.find(({ from, to }) => from === 'a' && to === 'd')!
    assert.equal(long.points.length, 6, 'it has a lane in both layers that it passes')
  })

  it('draws an edge that leads back beside the others', () => {
    const { lines } = layoutOf({ nodes: ['a', 'b'], edges: [edge('a', 'b'), edge('b', 'a'), edge('b', 'b')] })
    assert.deepEqual(
      lines.map(({ isBack }) => isBack),
      [false, true, true],
    )
  })

  it('of nothing is empty, and of an unknown node has no line', () => {
    assert.equal(layoutOf({ nodes: [], edges: [] }).boxes.size, 0)
    assert.deepEqual(layoutOf({ nodes: ['a'], edges: [edge('a', 'gone')] }).lines, [])
  })

  it('never puts two nodes in one place, nor a node outside, for any graph', () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    const one = fc.constantFrom(...ids)
    fc.assert(
      fc.property(fc.array(fc.tuple(one, one), { maxLength: 24 }), (pairs) => {
        const { boxes, lines, width, height } = layoutOf({
          nodes: ids,
          edges: pairs.map(([a, b]) => edge(a, b)),
        })
        assert.equal(lines.length, pairs.length)
        const all = [...boxes.values()]
        for (const [i, { x, y }] of all.entries()) {
          assert.ok(x >= 0 && y >= 0 && x + BOX.width <= width && y + BOX.height <= height)
          for (const other of all.slice(i + 1))
            assert.ok(other.y !== y || Math.abs(other.x - x) >= BOX.width, 'two nodes overlap')
        }
        for (const { from, to, isBack } of lines)
          if (!isBack) assert.ok(boxes.get(from)!.y < boxes.get(to)!.y)
      }),
    )
  })
})
