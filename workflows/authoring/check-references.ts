import type { NodeSpec } from '../language/definition.ts'
import type { Reference } from '../language/expressions/references.ts'
import { NAME_IT, SECRETS_ROOT, settingNamed } from '../language/expressions/secrets.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { type Problem, pointer } from '../language/problems.ts'
import {
  memberHint,
  NODE_MEMBERS,
  nameHint,
  rootHint,
  syntaxHint,
  withFilter,
} from '../language/reference-hints.ts'
import type { PlacedText } from '../language/texts.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType, LOOP_TYPES } from '../nodes/index.ts'
import { EXPRESSION } from '../shared/limits.ts'
import type { Graph } from './graph.ts'
import type { Bodies } from './loops.ts'
import type { Lowered } from './lower.ts'

const ROOTS = ['trigger', 'inputs', 'nodes', 'run', 'org', 'env', SECRETS_ROOT]
/** In the body of a loop. */
const ITEM_ROOTS = ['item', 'index']
/** Of the output of a loop, in its own body. */
const ITEM_FIELDS = ['item', 'index', 'count']

/** The filters of one text that are corrected, so that its references are checked too: it is parsed again for each. */
const MAX_CORRECTIONS = 3

interface Given {
  external?: boolean
  late?: string | undefined
  perItem?: boolean
  /** It would be rendered for each item, if the node had `items`. */
  withoutItems?: boolean
  corrections?: number
}

/** The nodes that a hint names. */
const MAX_NAMED = 5

/** Checks every placeholder of nodes and outputs. @returns the problems, and the ids of nodes whose result is read. */
export function checkReferences(
  lowered: Lowered,
  graph: Graph,
  bodies: Bodies,
  catalogue: Catalogue,
): { problems: Problem[]; read: Set<string> } {
  const { definition, texts } = lowered
  const nodes = new Map(definition.nodes.map((node) => [node.id, node]))
  const ids = [...nodes.keys()]
  const inputs = Object.keys(definition.inputs)
  const problems: Problem[] = []
  const read = new Set<string>()
  const fieldsOf = remembered((node: NodeSpec) => {
    const names = findNodeType(node.type)?.outputFields(node.config, catalogue)
    return names && { names, known: new Set(names) }
  })

  /** The loops around a placeholder; a setting that a loop renders for each item is in its body. */
  const around = (reader: NodeSpec | undefined, perItem: boolean) => {
    if (!reader) return []
    return perItem && isLoop(reader) ? [reader.id, ...bodies.around(reader.id)] : bodies.around(reader.id)
  }

  const isLoop = ({ type }: NodeSpec) => findNodeType(type)?.body !== undefined

  const fieldsAt = (node: NodeSpec, loops: readonly string[]) =>
    loops.includes(node.id) ? { names: ITEM_FIELDS, known: new Set(ITEM_FIELDS) } : fieldsOf(node)

  /**
   * `external`: it is the config of a node that calls other services. `late`: the root that only this setting can read.
   * `perItem`: it is rendered for each item of a list.
   */
  const check = (text: string, path: () => string, reader?: NodeSpec, given: Given = {}) => {
    const { external = false, late, perItem = false, withoutItems = false } = given
    const place = () => ({ path: path(), ...(reader ? { node_id: reader.id } : {}) })
    try {
      for (const reference of texts.references(text)) {
        const [root, name] = reference.path
        if (root !== undefined && root === late) continue
        if (root === 'nodes' && typeof name === 'string') read.add(name)
        const problem =
          problemOf(reference, reader, { perItem, withoutItems }) ?? secretProblem(reference, external)
        if (problem) problems.push({ ...problem, ...place() })
      }
    } catch (error) {
      const { message } = error as Error
      problems.push({ code: 'placeholder_syntax', message, hint: () => syntaxHint(message), ...place() })
      // Its references are checked in the same round.
      const { corrections = 0 } = given
      const corrected = corrections < MAX_CORRECTIONS ? withFilter(text, message) : undefined
      if (corrected !== undefined) check(corrected, path, reader, { ...given, corrections: corrections + 1 })
    }
  }

  const problemOf = (
    reference: Reference,
    reader: NodeSpec | undefined,
    { perItem, withoutItems }: { perItem: boolean; withoutItems: boolean },
  ): Pick<Problem, 'code' | 'message' | 'hint'> | undefined => {
    const [root, name, member, field] = reference.path.map(String)
    if (root === undefined) return undefined
    const loops = around(reader, perItem)
    if (ITEM_ROOTS.includes(root))
      return loops.length > 0 || perItem
        ? undefined
        : {
            code: 'root_not_available',
            message: `${root} is not available: it exists only in the body of a ${LOOP_TYPES}`,
            hint: withoutItems
              ? `add \`items\`, the list for whose items ${reader?.id} renders this: \`items: "{{ nodes.<id>.output.data }}"\``
              : 'in the body, the nodes that `item` leads to, it is the current one; after `done`, read the results: nodes.<loop>.output.items',
          }
    if (!ROOTS.includes(root))
      return {
        code: 'unknown_root',
        message: `unknown root ${root}: a placeholder starts with one of ${ROOTS.join(', ')}`,
        hint: () => rootHint(reference, { roots: ROOTS, nodes: ids, inputs }),
      }
    if (name === undefined) return undefined
    if (root === 'inputs' && !Object.hasOwn(definition.inputs, name))
      return {
        code: 'unknown_input',
        message: `the workflow has no input ${name}`,
        hint: () => nameHint(reference, 1, inputs),
      }
    if (root !== 'nodes') return undefined

    const node = nodes.get(name)
    if (!node)
      return {
        code: 'unknown_node',
        message: `there is no node ${name}`,
        hint: () => nameHint(reference, 1, ids),
      }
    if (member !== undefined && !NODE_MEMBERS.includes(member))
      return {
        code: 'unknown_field',
        message: `a node has no ${member}: it has ${NODE_MEMBERS.join(', ')}`,
        hint: memberHint(reference),
      }
    const fields = member === 'output' && field !== undefined ? fieldsAt(node, loops) : undefined
    if (field !== undefined && fields && !fields.known.has(field) && !reference.optional)
      return {
        code: 'unknown_field',
        message: `the output of ${name} has no field ${field}`,
        hint: () => nameHint(reference, 3, fields.names),
      }
    const outside = bodies.around(name).find((loop) => !loops.includes(loop))
    if (outside !== undefined)
      return {
        code: 'not_upstream',
        message: `${name} is in the body of ${outside}: it has a result for each item, which only the body can read`,
        hint: `nodes.${outside}.output.items`,
      }
    if (
      !reader ||
      (perItem && isLoop(reader) && (name === reader.id || bodies.around(name).includes(reader.id)))
    )
      return undefined
    return orderProblem(name, reader, reference)
  }

  const secretProblem = (reference: Reference, external: boolean) => {
    if (reference.path[0] !== SECRETS_ROOT) return undefined
    const code = 'root_not_available' as const
    if (!external)
      return {
        code,
        message: `${SECRETS_ROOT} are not available here: only the config of a node that calls other services can read them`,
        hint: 'read the secret where it is sent; keep what is no secret in env',
      }
    return settingNamed(reference) === undefined ? { code, message: NAME_IT } : undefined
  }

  const orderProblem = (name: string, reader: NodeSpec, reference: Reference) => {
    // Nodes in a cycle and unreachable nodes have no order; both are reported already.
    if (graph.cycle || !graph.reachable.has(reader.id)) return undefined
    if (name === reader.id)
      return {
        code: 'not_upstream' as const,
        message: `${name} reads its own result, which exists only after it has ended`,
        hint: () => upstreamHint(reader.id),
      }
    if (!graph.mayPrecede(name, reader.id))
      return {
        code: 'not_upstream' as const,
        message: `${name} is not upstream of ${reader.id}: its result is never available there`,
        hint: () => upstreamHint(reader.id),
      }
    if (reference.optional || graph.surelyPrecedes(name, reader.id)) return undefined
    return {
      code: 'maybe_not_upstream' as const,
      message: `${name} is not upstream of ${reader.id} on every path`,
      hint: 'add a default: {{ … | default: "" }}',
    }
  }

  const upstreamHint = (reader: string) => {
    const before = ids.filter((id) => id !== reader && graph.mayPrecede(id, reader)).slice(-MAX_NAMED)
    return before.length > 0
      ? `read a node before it: ${before.map((id) => `nodes.${id}.output`).join(', ')}`
      : 'no node is before it: read inputs or trigger'
  }

  const limited = (path: string, placed: PlacedText[], reader?: NodeSpec) => {
    const count = placed.reduce((sum, { text }) => sum + text.split('{{').length - 1, 0)
    if (count > EXPRESSION.placeholders)
      problems.push({
        code: 'placeholder_syntax',
        message: `there are ${count} placeholders here: ${EXPRESSION.placeholders} at most can be rendered at once`,
        path,
        hint: reader ? 'divide them among several nodes' : 'leave some of the outputs out',
        ...(reader ? { node_id: reader.id } : {}),
      })
    return count > EXPRESSION.placeholders
  }

  /** The texts in a value that have a placeholder. */
  const withPlaceholders = (value: object) => texts.of(value).filter(({ text }) => hasPlaceholder(text))

  for (const node of definition.nodes) {
    const path = lowered.nodePath(node.id)
    const placed = withPlaceholders(node.config)
    if (limited(`${path}/config`, placed, node)) continue
    const type = findNodeType(node.type)
    const external = type?.reachesOutside(node.config) ?? false
    const perItemOf = type?.perItem(node.config)
    for (const { text, path: keys } of placed) {
      const name = String(keys[0])
      const perItem = perItemOf?.includes(name) ?? false
      const withoutItems = !perItem && (type?.perItem({ ...node.config, items: [] }).includes(name) ?? false)
      const late = type && Object.hasOwn(type.late, name) ? type.late[name] : undefined
      check(text, () => `${path}/config${pointer(...keys)}`, node, { external, late, perItem, withoutItems })
    }
    if (node.when !== undefined) check(node.when, () => `${path}/when`, node)
  }
  const outputs = withPlaceholders(definition.outputs)
  if (!limited('/outputs', outputs))
    for (const { text, path } of outputs) check(text, () => `/outputs${pointer(...path)}`)
  return { problems, read }
}

function remembered<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>()
  return (key) => {
    if (!known.has(key)) known.set(key, compute(key))
    return known.get(key)!
  }
}
