import type { Reference } from '../expressions/references.ts'
import { references } from '../expressions/references.ts'
import { NAME_IT, SECRETS_ROOT, settingNamed } from '../expressions/secrets.ts'
import { hasPlaceholder } from '../expressions/template.ts'
import { EXPRESSION } from '../limits.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import { type Problem, pointer } from './errors.ts'
import type { Graph } from './graph.ts'
import type { Lowered } from './lower.ts'
import { memberHint, NODE_MEMBERS, nameHint, rootHint, syntaxHint, withFilter } from './reference-hints.ts'
import type { NodeSpec } from './types.ts'

const ROOTS = ['trigger', 'inputs', 'nodes', 'run', 'org', 'env', SECRETS_ROOT]
/** Roots of the language that are not available, and why. */
const NOT_AVAILABLE: Record<string, string> = {
  item: 'it exists only inside a loop',
  index: 'it exists only inside a loop',
}

/** The nodes that a hint names. */
const MAX_NAMED = 5

/** Checks every placeholder of nodes and outputs. @returns the problems, and the ids of nodes whose result is read. */
export function checkReferences(
  lowered: Lowered,
  graph: Graph,
  catalogue: Catalogue,
): { problems: Problem[]; read: Set<string> } {
  const { definition } = lowered
  const nodes = new Map(definition.nodes.map((node) => [node.id, node]))
  const ids = [...nodes.keys()]
  const inputs = Object.keys(definition.inputs)
  const problems: Problem[] = []
  const read = new Set<string>()
  const fieldsOf = remembered((node: NodeSpec) => {
    const names = findNodeType(node.type)?.outputFields(node.config, catalogue)
    return names && { names, known: new Set(names) }
  })

  /** `external`: it is the config of a node that calls other services. */
  const check = (text: string, path: string, reader?: NodeSpec, given: { external?: boolean } = {}) => {
    const { external = false } = given
    const where = reader ? { path, node_id: reader.id } : { path }
    try {
      for (const reference of references(text)) {
        const [root, name] = reference.path
        if (root === 'nodes' && typeof name === 'string') read.add(name)
        const problem = problemOf(reference, reader) ?? secretProblem(reference, external)
        if (problem) problems.push({ ...problem, ...where })
      }
    } catch (error) {
      const { message } = error as Error
      problems.push({ code: 'placeholder_syntax', message, hint: () => syntaxHint(message), ...where })
      // Its references are checked in the same round.
      const corrected = withFilter(text, message)
      if (corrected !== undefined) check(corrected, path, reader, given)
    }
  }

  const problemOf = (
    reference: Reference,
    reader: NodeSpec | undefined,
  ): Pick<Problem, 'code' | 'message' | 'hint'> | undefined => {
    const [root, name, member, field] = reference.path.map(String)
    if (root === undefined) return undefined
    const unavailable = Object.hasOwn(NOT_AVAILABLE, root) ? NOT_AVAILABLE[root] : undefined
    if (unavailable)
      return { code: 'root_not_available', message: `${root} is not available: ${unavailable}` }
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
    const fields = member === 'output' && field !== undefined ? fieldsOf(node) : undefined
    if (field !== undefined && fields && !fields.known.has(field) && !reference.optional)
      return {
        code: 'unknown_field',
        message: `the output of ${name} has no field ${field}`,
        hint: () => nameHint(reference, 3, fields.names),
      }
    return reader ? orderProblem(name, reader, reference) : undefined
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

  const limited = (path: string, texts: string[], reader?: NodeSpec) => {
    const count = texts.reduce((sum, text) => sum + text.split('{{').length - 1, 0)
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

  for (const node of definition.nodes) {
    const path = lowered.nodePath(node.id)
    if (
      limited(
        `${path}/config`,
        strings(node.config).map(([text]) => text),
        node,
      )
    )
      continue
    const external = findNodeType(node.type)?.effectClass(node.config) === 'external'
    for (const [text, inner] of strings(node.config))
      check(text, `${path}/config${inner}`, node, { external })
    if (node.when !== undefined) check(node.when, `${path}/when`, node)
  }
  const outputs = strings(definition.outputs)
  if (
    !limited(
      '/outputs',
      outputs.map(([text]) => text),
    )
  )
    for (const [text, inner] of outputs) check(text, `/outputs${inner}`)
  return { problems, read }
}

function remembered<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>()
  return (key) => {
    if (!known.has(key)) known.set(key, compute(key))
    return known.get(key)!
  }
}

/** Every string with a placeholder in a value, with its JSON Pointer. */
function strings(value: unknown, path = ''): [text: string, path: string][] {
  if (typeof value === 'string') return hasPlaceholder(value) ? [[value, path]] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => strings(item, `${path}${pointer(key)}`))
}
