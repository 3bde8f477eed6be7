import type { Definition, Edge, NodeSpec } from '../../language/definition.ts'
import { defaultHandle } from '../flow.ts'
import { common, lowerSpec, nodeSpec } from '../lower.ts'
import { parseYaml } from '../parse.ts'
import { type Spec, type SpecNode, specSchema } from '../schema.ts'
import { patchYaml, writeYaml } from './patch-yaml.ts'
import { edgesByNode, explicitNext, SPEC_ORDER, type SpecValue, specOf } from './spec-of.ts'

/**
 * The YAML of a definition. With `base`, the YAML of an earlier version, what is equal keeps its text and comments.
 * Undefined if no YAML within the limits of a spec means exactly the same, for example if it would be too large.
 */
export function writeSpec(definition: Definition, base?: string | null): string | undefined {
  const earlier = typeof base === 'string' ? readSpec(base) : undefined
  if (earlier) {
    const text = patchYaml(base!, merged(definition, earlier))
    if (means(text, definition)) return text
  }
  const text = writeYaml(specOf(definition))
  return means(text, definition) ? text : undefined
}

/** A spec as it was written, and the definition that it has today. */
interface Written {
  value: SpecValue
  definition: Definition
}

function readSpec(text: string): Written | undefined {
  const { value, problems } = parseYaml(text)
  if (problems.length > 0) return undefined
  return lowered(value)
}

function lowered(value: unknown): Written | undefined {
  const parsed = specSchema.safeParse(value)
  if (!parsed.success) return undefined
  return { value: value as SpecValue, definition: lowerSpec(parsed.data as Spec).definition }
}

/** Whether the text is a spec with exactly this definition. */
function means(text: string, definition: Definition): boolean {
  const written = readSpec(text)
  return written !== undefined && same(canonical(written.definition), canonical(definition))
}

/** A definition with its members in one order, and its edges in the order of the nodes, each edge once. */
function canonical({ nodes, edges, ...others }: Definition) {
  const leaving = edgesByNode(edges)
  return {
    ...common(others),
    nodes: nodes.map(({ id, ...node }) => [nodeSpec(id, node as SpecNode), targetsOf(leaving.get(id))]),
  }
}

/** The targets by handle. The order of the handles has no meaning. */
function targetsOf(edges: Edge[] = []): unknown {
  const found = new Map<string, Set<string>>()
  for (const { handle, to } of edges) found.set(handle, (found.get(handle) ?? new Set()).add(to))
  return [...found].map(([handle, to]) => [handle, ...to]).sort(([a], [b]) => (a! < b! ? -1 : 1))
}

/** The spec of a definition in which each member that means the same as before is written as before. */
function merged(definition: Definition, earlier: Written): SpecValue {
  const canonicalSpec = specOf(definition)
  const before = new Map(earlier.definition.nodes.map((node) => [node.id, node]))
  const leaving = [edgesByNode(earlier.definition.edges), edgesByNode(definition.edges)] as const
  const nodes = Object.fromEntries(
    definition.nodes.map((node) => {
      const { id } = node
      const was = before.get(id)
      const written = earlier.value.nodes[id]
      if (!was || !written) return [id, canonicalSpec.nodes[id]!]
      const sameNext = same(targetsOf(leaving[0].get(id)), targetsOf(leaving[1].get(id)))
      return [id, mergedNode(node, was, written, canonicalSpec.nodes[id]!, sameNext)]
    }),
  )
  const others = Object.fromEntries(
    SPEC_ORDER.filter((name) => name !== 'nodes').map((name) => {
      const key = name as 'name'
      const kept = same(definition[key], earlier.definition[key])
      return [name, kept ? earlier.value[name] : canonicalSpec[name]]
    }),
  )
  const spec = inOrder({ ...others, nodes }, Object.keys(earlier.value), SPEC_ORDER) as SpecValue
  return withFlow(spec, definition)
}

function mergedNode(
  node: NodeSpec,
  was: NodeSpec,
  written: Record<string, unknown>,
  wanted: Record<string, unknown>,
  sameNext: boolean,
): Record<string, unknown> {
  // `next: {error: end}` is the `on_error` of the definition.
  const sameFlow = sameNext && same(node.on_error, was.on_error)
  const names = Object.keys({ ...written, ...wanted })
  const members = Object.fromEntries(
    names.map((name) => {
      const ofFlow = name === 'next' || name === 'on_error'
      const kept = ofFlow ? sameFlow : same(node[name as 'type'], was[name as 'type'])
      return [name, kept ? written[name] : wanted[name]]
    }),
  )
  return inOrder(members, Object.keys(written), Object.keys(wanted))
}

/**
 * A node without `next` flows to the one after it, which can be another one now. Such nodes get an explicit `next`. It
 * can end the flow of other nodes into its targets, so this is repeated until all edges are right.
 */
function withFlow(spec: SpecValue, { nodes, edges }: Definition): SpecValue {
  const leaving = edgesByNode(edges)
  const written = { ...spec.nodes }
  const named = new Set(Object.values(written).flatMap(({ next }) => namedBy(next)))
  for (let isRight = false; !isRight; ) {
    isRight = true
    nodes.forEach((node, index) => {
      const { id } = node
      if ('next' in written[id]!) return
      const following = nodes[index + 1]?.id
      const handle = defaultHandle(node.type, node.config)
      const flows = following !== undefined && handle !== '' && !named.has(following)
      const flow = flows ? [{ from: id, handle, to: following }] : []
      const own = leaving.get(id)
      if (same(targetsOf(flow), targetsOf(own))) return
      isRight = false
      const next = explicitNext(node, own)
      written[id] = { ...written[id], next }
      for (const target of namedBy(next)) named.add(target)
    })
  }
  return { ...spec, nodes: written }
}

function namedBy(next: unknown): string[] {
  if (typeof next === 'string') return [next]
  return typeof next === 'object' && next !== null ? (Object.values(next).flat() as string[]) : []
}

/** The members that are given, in the earlier order; a new one follows the member that precedes it in `order`. */
function inOrder(
  members: Record<string, unknown>,
  earlier: string[],
  order: string[],
): Record<string, unknown> {
  const names = earlier.filter((name) => members[name] !== undefined)
  order.forEach((name, index) => {
    if (members[name] === undefined || names.includes(name)) return
    const before = order.slice(0, index).findLast((one) => names.includes(one))
    names.splice(before === undefined ? 0 : names.indexOf(before) + 1, 0, name)
  })
  return Object.fromEntries(names.map((name) => [name, members[name]]))
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
