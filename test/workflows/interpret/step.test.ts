import assert from 'node:assert/strict'
import fc from 'fast-check'
import { compile } from '../../../workflows/authoring/compile.ts'
import { type NodeState, step } from '../../../workflows/interpret/step.ts'
import type { Edge, Program } from '../../../workflows/language/definition.ts'

function programOf(count: number, edges: Edge[], joins: ('all' | 'any')[] = []): Program {
  return compile({
    name: 'Test',
    trigger: { type: 'manual' },
    inputs: {},
    nodes: Array.from({ length: count }, (_, n) => ({
      id: `n${n}`,
      type: 'condition',
      config: {},
      ...(joins[n] ? { join: joins[n] } : {}),
    })),
    edges,
    outputs: {},
    settings: {},
  })
}

const edge = (from: number, to: number, handle = 'true'): Edge => ({ from: `n${from}`, handle, to: `n${to}` })
const left = (handle: string): NodeState => ({ status: 'completed', handle })

describe('the next step of a run', () => {
  it('starts with the first node', () => {
    assert.deepEqual(step(programOf(2, [edge(0, 1)]), new Map()), { ready: ['n0'], skipped: [] })
  })

  it('takes the edges of the handle by which a node left; the others are dead', () => {
    const program = programOf(4, [edge(0, 1), edge(0, 2, 'false'), edge(2, 3)])
    assert.deepEqual(step(program, new Map([['n0', left('true')]])), { ready: ['n1'], skipped: ['n2', 'n3'] })
  })

  it('waits at a join for all branches, or continues at the first with join any', () => {
    const edges = [edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)]
    const states = new Map<string, NodeState>([
      ['n0', left('true')],
      ['n1', left('true')],
      ['n2', { status: 'running', handle: null }],
    ])
    assert.deepEqual(step(programOf(4, edges), states).ready, [])
    assert.deepEqual(step(programOf(4, edges, ['all', 'all', 'all', 'any']), states).ready, ['n3'])
  })

  it('continues by the error handle of a failed node', () => {
    const program = programOf(3, [edge(0, 1), edge(0, 2, 'error')])
    const states = new Map<string, NodeState>([['n0', { status: 'failed', handle: 'error' }]])
    assert.deepEqual(step(program, states), { ready: ['n2'], skipped: ['n1'] })
  })

  it('agrees with a walk of all paths, for every graph and every order of events', () => {
    const size = 7
    const graph = fc.record({
      edges: fc.uniqueArray(
        fc
          .tuple(fc.nat(size - 2), fc.nat(size - 1), fc.constantFrom('true', 'false'))
          .filter(([from, to]) => from < to),
        { selector: String, maxLength: 20 },
      ),
      handles: fc.array(fc.constantFrom('true', 'false'), { minLength: size, maxLength: size }),
      joins: fc.array(fc.constantFrom('all' as const, 'any' as const), { minLength: size, maxLength: size }),
      picks: fc.array(fc.nat(), { minLength: 2 * size, maxLength: 2 * size }),
    })
    fc.assert(
      fc.property(graph, ({ edges, handles, joins, picks }) => {
        const program = programOf(
          size,
          edges.map(([from, to, handle]) => edge(from, to, handle)),
          joins,
        )
        // A node runs exactly if some path of taken edges leads to it from the start.
        const reached = new Set([0])
        for (let n = 0; n < size; n++)
          for (const [from, to, handle] of edges)
            if (from === n && reached.has(n) && handles[n] === handle) reached.add(to)

        const states = new Map<string, NodeState>()
        const open: string[] = []
        for (let turn = 0; ; turn++) {
          const { ready, skipped } = step(program, states)
          for (const id of skipped) states.set(id, { status: 'skipped', handle: null })
          for (const id of ready) {
            assert.ok(!states.has(id), `${id} starts twice`)
            states.set(id, { status: 'running', handle: null })
            open.push(id)
          }
          if (open.length === 0) break
          const [id] = open.splice(picks[turn % picks.length]! % open.length, 1)
          states.set(id!, left(handles[Number(id!.slice(1))]!))
        }
        for (let n = 0; n < size; n++)
          assert.equal(states.get(`n${n}`)?.status, reached.has(n) ? 'completed' : 'skipped', `n${n}`)
      }),
    )
  })
})
