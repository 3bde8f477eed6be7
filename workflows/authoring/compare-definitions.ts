import type { Definition, NodeSpec } from '../language/definition.ts'
import { pointer } from '../language/problems.ts'
import { isObject } from '../shared/is-object.ts'

/** What differs at a path. `reordered`: only the order, where it has a meaning; the values are then names. */
export const CHANGE_KINDS = ['added', 'removed', 'changed', 'reordered'] as const

export interface ValueChange {
  /** JSON Pointer: into the node, where `/next/<handle>` are the targets of its edges, or into the definition. */
  path: string
  kind: (typeof CHANGE_KINDS)[number]
  /** Absent if added. */
  before?: unknown
  /** Absent if removed. */
  after?: unknown
}

export interface DefinitionChanges {
  nodes: {
    added: { node_id: string; type: string }[]
    removed: { node_id: string; type: string }[]
    changed: { node_id: string; changes: ValueChange[] }[]
  }
  /** Changes outside of the nodes, and of their order. */
  others: ValueChange[]
}

const OTHERS = ['name', 'description', 'trigger', 'inputs', 'settings', 'outputs'] as const

/** What changed from one definition to another; without `before`, everything is added. */
export function compareDefinitions(before: Definition | undefined, after: Definition): DefinitionChanges {
  const was = nodesOf(before)
  const is = nodesOf(after)
  const missing = (from: NodesById, other: NodesById) =>
    [...from.values()]
      .filter(({ id }) => !other.has(id))
      .map(({ id, type }) => ({ node_id: id, type: String(type) }))
  const changed = [...is].flatMap(([id, node]) => {
    const earlier = was.get(id)
    const changes = earlier ? compareValues(earlier, node) : []
    return changes.length > 0 ? [{ node_id: id, changes }] : []
  })
  const others = OTHERS.flatMap((name) => compareMember({ ...before }, { ...after }, name, ''))
  const kept = [
    [...was.keys()].filter((id) => is.has(id)),
    [...is.keys()].filter((id) => was.has(id)),
  ] as const
  return {
    nodes: { added: missing(is, was), removed: missing(was, is), changed },
    others: [...others, ...reordered(kept[0], kept[1], '/nodes')],
  }
}

type NodesById = ReadonlyMap<string, NodeSpec & { next: Record<string, string[]> }>

function nodesOf(definition: Definition | undefined): NodesById {
  const found = new Map(definition?.nodes.map((node) => [node.id, { ...node, next: targets() }]))
  for (const { from, handle, to } of definition?.edges ?? []) {
    const next = found.get(from)?.next
    if (next) next[handle] = [...(next[handle] ?? []), to]
  }
  return found
}

const targets = (): Record<string, string[]> => Object.create(null)

/** The differences of two values. Lists are compared by position. */
function compareValues(before: unknown, after: unknown, path = ''): ValueChange[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    const changes = names.flatMap((name) => compareMember(before, after, name, path))
    if (path !== '/config/cases' || changes.length > 0) return changes
    return reordered(Object.keys(before), Object.keys(after), path)
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length)
    return Array.from({ length }, (_, i) => compareMember(before, after, i, path)).flat()
  }
  return Object.is(before, after) ? [] : [{ path, kind: 'changed', before, after }]
}

function compareMember(before: object, after: object, name: string | number, path: string): ValueChange[] {
  const at = path + pointer(name)
  const has = (values: object) => Object.hasOwn(values, name) && memberOf(values, name) !== undefined
  if (!has(before) && !has(after)) return []
  if (!has(before)) return [{ path: at, kind: 'added', after: memberOf(after, name) }]
  if (!has(after)) return [{ path: at, kind: 'removed', before: memberOf(before, name) }]
  return compareValues(memberOf(before, name), memberOf(after, name), at)
}

const memberOf = (values: object, name: string | number) => (values as Record<string | number, unknown>)[name]

function reordered(before: string[], after: string[], path: string): ValueChange[] {
  return before.every((name, i) => name === after[i]) ? [] : [{ path, kind: 'reordered', before, after }]
}

/** Names in one part of a summary. */
const MOST_NAMES = 5

/** What changed, in a line: `adds ship, label; removes wait; changes save, trigger`. */
export function summaryOf({ nodes, others }: DefinitionChanges): string {
  const ids = (found: { node_id: string }[]) => found.map(({ node_id }) => node_id)
  // The order of nodes, and whole members, by the name of the member.
  const members = [...new Set(others.map(({ path }) => path.split('/')[1]!))]
  const parts: [string, string[]][] = [
    ['adds', ids(nodes.added)],
    ['removes', ids(nodes.removed)],
    [
      'changes',
      [...ids(nodes.changed), ...members.map((name) => (name === 'nodes' ? 'the order of nodes' : name))],
    ],
  ]
  return parts
    .filter(([, names]) => names.length > 0)
    .map(([verb, names]) => `${verb} ${listed(names)}`)
    .join('; ')
}

function listed(names: string[]): string {
  const more = names.length - MOST_NAMES
  return more > 0 ? `${names.slice(0, MOST_NAMES).join(', ')} and ${more} more` : names.join(', ')
}
