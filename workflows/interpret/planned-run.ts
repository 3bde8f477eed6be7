import { isNotMade } from '../effects/narrate.ts'
import type { Program, ProgramNode } from '../language/definition.ts'
import { references } from '../language/expressions/references.ts'
import { textsIn } from '../language/texts.ts'
import type { NodeType } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import { firstHandle, type Outcome } from './execute.ts'
import { nodeKey, splitKey } from './frames.ts'
import type { RunNode } from './run-state.ts'
import type { MissingStub, PlannedEffect, Stub, TestedRunNode } from './test-case.ts'

/**
 * The effects and results of the nodes of a test: nodes run as in a run, but the effects of reads, writes and calls are
 * not made. A stub gives the result in their place; without one, the node has completed with an unknown output,
 * and the stub counts as missing as soon as another node reads that output.
 */
export class PlannedRun {
  readonly effects: PlannedEffect[] = []
  /** The keys of nodes whose result a stub gave, and the ids of those without whose result is unknown. */
  private readonly stubbed = new Set<string>()
  private readonly unknown = new Set<string>()
  private readonly stubs: Record<string, Stub>

  constructor(stubs: Record<string, Stub>) {
    this.stubs = stubs
  }

  stubOf(node: Pick<ProgramNode, 'id'>, path: string): Stub | undefined {
    for (const key of [nodeKey(path, node.id), node.id])
      if (Object.hasOwn(this.stubs, key)) return this.stubs[key]
    return undefined
  }

  /** The outcome that a run gets for that of a node whose calls were not made. A config that is wrong stays wrong. */
  outcomeOf(node: ProgramNode, path: string, performed: Outcome, calls: string[]): Outcome {
    const { input } = performed
    const unmade = performed.status === 'failed' && isNotMade(performed.error)
    if (performed.status === 'failed' && !unmade) return performed
    const type = findNodeType(node.type)!
    if (unmade || (performed.status === 'waiting' && node.effect !== 'pure'))
      this.effects.push({
        node_id: node.id,
        path,
        node_type: node.type,
        effect: node.effect,
        input,
        calls,
      })
    const stub = this.stubOf(node, path)
    if (stub) {
      this.stubbed.add(nodeKey(path, node.id))
      if (stub.error) return { status: 'failed', input, error: stub.error, retryable: false }
      const handle = stub.handle ?? firstHandle(type, node.config)
      return { status: 'completed', input, output: stub.output ?? null, handle }
    }
    if (!unmade) return performed
    this.unknown.add(node.id)
    return { status: 'completed', input, output: {}, handle: firstHandle(type, node.config) }
  }

  nodesOf(rows: ReadonlyMap<string, RunNode>): TestedRunNode[] {
    return [...rows].map(
      ([key, { node_id, path, node_type, title, status, handle, input, output, error }]) => ({
        node_id,
        path,
        node_type,
        title,
        status,
        handle,
        input: input ?? null,
        output: !this.stubbed.has(key) && this.unknown.has(node_id) ? null : (output ?? null),
        error,
        stubbed: this.stubbed.has(key),
      }),
    )
  }

  /** The stubs without which the run may be another one. */
  missing(program: Program, rows: ReadonlyMap<string, RunNode>, completed: boolean): MissingStub[] {
    const readers = new Map([...this.unknown].map((id) => [id, new Set<string>()]))
    const note = (value: unknown, reader: string) => {
      for (const id of nodesReadBy(value)) readers.get(id)?.add(reader)
    }
    const ran = new Set(
      [...rows].filter(([, { status }]) => status !== 'skipped').map(([key]) => splitKey(key).id),
    )
    for (const id of ran) {
      const { type, config, when } = program.nodes[id]!
      const { verbatim = [] } = findNodeType(type) ?? {}
      note([Object.entries(config).filter(([name]) => !verbatim.includes(name)), when ?? ''], id)
    }
    if (completed) note(program.outputs, 'outputs')
    return [...readers].flatMap(([node_id, read]) => {
      const handles = handlesOf(findNodeType(program.nodes[node_id]!.type)!, program.nodes[node_id]!)
      const decides = handles.length > 1 ? handles : []
      return read.size === 0 && decides.length === 0
        ? []
        : [{ node_id, read_by: [...read], handles: decides }]
    })
  }
}

/** The handles by which a node that succeeds can leave, and that lead on. */
function handlesOf(type: NodeType, { config, next }: ProgramNode): string[] {
  const names = type.handles(config).map(({ name }) => name)
  const ofSuccess = names.filter((name) => name !== 'error' && name !== type.body)
  return ofSuccess.some((name) => name in next) ? ofSuccess : []
}

/** The ids of the nodes whose outputs the placeholders of a value read. */
function nodesReadBy(value: unknown): string[] {
  return textsIn(value).flatMap(({ text }) => {
    try {
      return references(text).flatMap(({ path: [root, id, member] }) =>
        root === 'nodes' && (member === undefined || member === 'output') ? [String(id)] : [],
      )
    } catch {
      // The node has failed because of it.
      return []
    }
  })
}
