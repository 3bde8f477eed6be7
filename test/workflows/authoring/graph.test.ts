import assert from 'node:assert/strict'
import fc from 'fast-check'
import { graphOf } from '../../../workflows/authoring/graph.ts'
import type { Edge, NodeSpec } from '../../../workflows/language/definition.ts'
import { findNodeType } from '../../../workflows/nodes/index.ts'
import { oracleGraphOf } from '../../support/graph-oracle.ts'
import { stepsOf } from '../../support/steps.ts'

const typeOf = ({ type }: NodeSpec) => findNodeType(type)

const CONFIGS: Record<string, Record<string, unknown>> = {
  set_fields: { fields: {} },
  delay: { for: '1s' },
  condition: { conditions: [{ left: 1, operator: 'is_empty' }] },
  switch: { value: 1, cases: { one: 1, two: 2 } },
  stop: {},
  unknown: {},
}
const HANDLES = ['success', 'true', 'false', 'one', 'two', 'default', 'error', 'nonsense']

const id = (at: number) => `n${at}`

const node = fc.record({
  type: fc.constantFrom(...Object.keys(CONFIGS)),
  when: fc.option(fc.constant('{{ inputs.a }}'), { nil: undefined, freq: 4 }),
  join: fc.option(fc.constantFrom('all' as const, 'any' as const), { nil: undefined }),
  on_error: fc.option(fc.constantFrom('end' as const, 'continue' as const), { nil: undefined, freq: 3 }),
})

/** Mostly acyclic: edges lead from earlier to later nodes, except for one edge in some graphs. */
const graphs = fc.array(node, { minLength: 1, maxLength: 12 }).chain((made) => {
  const nodes = made.map(({ type, when, join, on_error }, at) => ({
    id: id(at),
    type,
    config: CONFIGS[type]!,
    ...(when === undefined ? {} : { when }),
    ...(join === undefined ? {} : { join }),
    ...(on_error === undefined ? {} : { on_error }),
  }))
  const handle = (at: number) =>
    fc.oneof(
      { weight: 3, arbitrary: fc.constant(typeOf(nodes[at]!)?.handles(nodes[at]!.config)[0]?.name ?? '') },
      { weight: 2, arbitrary: fc.constantFrom(...HANDLES) },
    )
  const at = fc.nat({ max: nodes.length - 1 })
  const edge = fc
    .tuple(at, at)
    .filter(([one, other]) => one !== other)
    .map(([one, other]) => [Math.min(one, other), Math.max(one, other)] as const)
    .chain(([from, to]) => handle(from).map((name): Edge => ({ from: id(from), handle: name, to: id(to) })))
  const back = fc.tuple(at, at).map(([from, to]): Edge => ({ from: id(from), handle: 'success', to: id(to) }))
  const lost = at.map((from): Edge => ({ from: id(from), handle: 'success', to: 'nowhere' }))
  const edges = nodes.length < 2 ? fc.constant<Edge[]>([]) : fc.array(edge, { maxLength: 30 })
  return fc
    .tuple(edges, fc.option(fc.oneof(back, lost), { nil: undefined, freq: 5 }))
    .map(([some, more]) => ({ nodes, edges: more ? [...some, more] : some }))
})

describe('the analysis of a graph', () => {
  it('finds what the slow, obvious one finds', () => {
    let certain = 0
    let doubtful = 0
    fc.assert(
      fc.property(graphs, (graph) => {
        const found = graphOf(graph, typeOf)
        const expected = oracleGraphOf(graph, typeOf)
        assert.deepEqual(found.cycle, expected.cycle)
        assert.deepEqual([...found.reachable].sort(), [...expected.reachable].sort())
        if (expected.cycle) return
        for (const { id: reader } of graph.nodes)
          for (const { id: read } of graph.nodes) {
            const [before, sure] = [expected.upstream(reader).has(read), expected.certain(reader).has(read)]
            assert.equal(found.mayPrecede(read, reader), before, `${read} upstream of ${reader}`)
            if (!expected.reachable.has(reader)) continue
            assert.equal(found.surelyPrecedes(read, reader), sure, `${read} certain at ${reader}`)
            if (before && sure) certain++
            if (before && !sure) doubtful++
          }
      }),
      { numRuns: 3_000 },
    )
    assert.ok(certain > 1_000 && doubtful > 1_000, `${certain} certain, ${doubtful} doubtful`)
  })

  it('takes a few steps for each of 2,000 nodes and 20,000 edges', async () => {
    const nodes = Array.from({ length: 2_000 }, (_, at) => ({
      id: id(at),
      type: 'switch',
      config: CONFIGS.switch!,
    }))
    const edges = nodes.flatMap((_, at): Edge[] =>
      Array.from({ length: 10 }, (_, step) => at + 1 + step * 7)
        .filter((to) => to < nodes.length)
        .map((to, step) => ({ from: id(at), handle: HANDLES[step % HANDLES.length]!, to: id(to) })),
    )
    const steps = await stepsOf(() => graphOf({ nodes, edges }, typeOf))
    assert.ok(steps < 25 * (nodes.length + edges.length), `${steps} steps`)
  })
})
