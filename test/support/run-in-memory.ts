import { compile } from '../../workflows/authoring/compile.ts'
import type { Happened } from '../../workflows/bundle/protocol.ts'
import { contextOf } from '../../workflows/interpret/context.ts'
import { execute } from '../../workflows/interpret/execute.ts'
import { iterationPath, nodeKey } from '../../workflows/interpret/frames.ts'
import type { LoopChange } from '../../workflows/interpret/rows.ts'
import type { Ending, RunIteration, RunNode } from '../../workflows/interpret/run-state.ts'
import { runSegment, type SegmentResult } from '../../workflows/interpret/segment.ts'
import type { NodeSpec, Program } from '../../workflows/language/definition.ts'
import { LIMITS, type Limits } from '../../workflows/shared/run-limits.ts'
import { completeDefinition, type PartialDefinition } from './definition.ts'
import { ID, runFacts } from './run-facts.ts'

export const set = (id: string, more: Partial<NodeSpec> = {}): NodeSpec => ({
  id,
  type: 'set_fields',
  config: { fields: { value: id } },
  ...more,
})
export const delay = (id: string): NodeSpec => ({ id, type: 'delay', config: { for: '1h' } })
export const call = (id: string): NodeSpec => ({
  id,
  type: 'api_request',
  config: { url: 'https://x.test/' },
})

/**
 * A run in memory: each segment continues from the rows of the earlier ones; it loads what the database would.
 * `stored` changes the program to what another version has compiled.
 */
export function runOf(
  definition: PartialDefinition,
  options: { limits?: Partial<Limits>; msPerNode?: number; stored?: (program: Program) => void } = {},
) {
  const program = compile(completeDefinition(definition))
  options.stored?.(program)
  const limits = { ...LIMITS, ...options.limits }
  /** By key: a node's id, with the path of its iteration before it. */
  const rows = new Map<string, RunNode>()
  const loops = new Map<string, LoopChange>()
  const iterations = new Map<string, RunIteration>()
  let time = Date.parse('2026-01-01T00:00:00.000Z')
  let segment = 0
  let ending: Ending | undefined
  return {
    rows,
    loops,
    iterations,
    /** The row of an external node, as its activity writes it. */
    leave(id: string, change: Partial<RunNode>) {
      rows.set(id, { ...rows.get(id)!, ended_at: '2026-01-01T00:00:01.000Z', ...change })
    },
    statuses: () => Object.fromEntries([...rows].map(([key, { status }]) => [key, status])),
    next(...happened: Happened[]): Promise<SegmentResult> {
      return this.segment({ happened })
    },
    async segment({
      happened = [],
      ...more
    }: {
      happened?: Happened[]
      drain?: true
      after?: string
      reissue?: boolean
      /** A pause is requested. */
      hold?: boolean
    }) {
      const { reissue = false, hold = false, ...rest } = more
      const input = { organization_id: ID, run_id: ID, segment: segment++, happened, ...rest }
      const open = [...iterations.values()].filter((one) => one.settled_segment === null)
      const paths = new Set(['', ...open.map(iterationPath)])
      const state = {
        ...runFacts,
        run: { ...runFacts.run, ...(ending && { ending }) },
        nodes: [...rows.values()].filter(({ path }) => paths.has(path)),
        loops: [...loops.values()].filter((loop) => loop.open),
        iterations: open,
      }
      const result = await runSegment(program, structuredClone(state), input, {
        limits,
        reissue,
        hold,
        loops: {
          items: async ({ loop }, from, count) =>
            loops
              .get(loop)!
              .items!.slice(from, from + count)
              .map((item, index) => ({ index: from + index, item })),
          turn: async ({ loop }, index) => {
            const before = iterations.get(`${loop}:${index - 1}`)
            return { index, item: before ? before.output : loops.get(loop)!.items![0] }
          },
          results: async (loop) =>
            [...iterations.values()]
              .filter((one) => one.loop === loop && one.settled_segment !== null)
              .map(({ index, status, output, error }) => ({
                index,
                status,
                output,
                ...(error && { error }),
              })),
        },
        clock: () => time,
        runNode(node, scope, path) {
          time += options.msPerNode ?? 0
          const context = contextOf({
            ...runFacts,
            now: new Date(time),
            node: { id: node.id, attempt: 1, path },
            signal: new AbortController().signal,
            effects: {},
          })
          const explain = (error: unknown) => {
            throw error
          }
          return execute(node, scope, context, { limits, explain })
        },
      })
      ending ??= result.ending
      for (const row of result.nodes) rows.set(nodeKey(row.path, row.node_id), row)
      for (const loop of result.loops) loops.set(loop.loop, { ...loops.get(loop.loop), ...loop })
      for (const one of result.iterations) iterations.set(iterationPath(one), one)
      return result
    },
  }
}
