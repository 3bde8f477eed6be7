import { z } from 'zod'
import { checkConfig } from '../language/config.ts'
import type { Definition, NodeSpec } from '../language/definition.ts'
import type { Reference } from '../language/expressions/references.ts'
import { countValues } from '../language/measure.ts'
import { type Problem, pointer, write } from '../language/problems.ts'
import { flowText, replaced } from '../language/repair.ts'
import type { NodeType } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import { SPEC } from '../shared/limits.ts'
import type { Lowered } from './lower.ts'

type Nodes = ReadonlyMap<string, NodeSpec>

/** One sample of each JSON Schema type: a setting that accepts the sample accepts the type. */
const SAMPLES: Record<string, unknown> = {
  string: 'x',
  number: 1,
  integer: 1,
  boolean: true,
  object: {},
  array: [],
}

/** Types that a filter can convert to text. */
const TEXTUAL = ['number', 'integer', 'boolean']

/** Checks each setting whose value is one whole placeholder of a known type: the setting must accept the type. */
export function checkTypes({ definition, texts, nodePath }: Lowered): Problem[] {
  const nodes = new Map(definition.nodes.map((node) => [node.id, node]))
  return definition.nodes.flatMap((node): Problem[] => {
    const type = findNodeType(node.type)
    if (!type) return []
    const typed = texts.of(node.config).flatMap(({ text, path }) => {
      const valueType = typeOf(texts.readable(text), definition, nodes)
      return valueType !== undefined && Object.hasOwn(SAMPLES, valueType) ? [{ text, path, valueType }] : []
    })
    return typed
      .slice(0, SPEC.typeChecks / countValues(node.config))
      .flatMap(({ text, path, valueType }): Problem[] => {
        const refuses = (sample: unknown) =>
          checkConfig(type.config, replaced(node.config, path, sample)).some(
            (issue) => issue.code === 'invalid_type' && pointer(...issue.path) === pointer(...path),
          )
        if (!refuses(SAMPLES[valueType])) return []
        const setting = path.join('.')
        return [
          {
            code: 'type_mismatch',
            message: `${text} is of type ${valueType}, which ${setting} of a ${node.type} does not accept`,
            path: `${nodePath(node.id)}/config${pointer(...path)}`,
            node_id: node.id,
            hint() {
              if (TEXTUAL.includes(valueType) && !refuses(SAMPLES.string))
                return write(flowText(text.replace(/\s*\}\}$/, ' | append: "" }}')))
              return valueType === 'object' && !refuses(SAMPLES.array) ? write(flowText([text])) : undefined
            },
          },
        ]
      })
  })
}

/** The type of a text with these references; undefined unless it is one whole placeholder of a known type. */
function typeOf(read: readonly Reference[], definition: Definition, nodes: Nodes): string | undefined {
  const [only] = read
  return only?.whole && !only.dynamic && read.length === 1
    ? referenceType(only, definition, nodes)
    : undefined
}

function referenceType({ path }: Reference, definition: Definition, nodes: Nodes): string | undefined {
  const [root, name, member, field] = path.map(String)
  if (root === 'inputs' && path.length === 2) return name && own(definition.inputs, name)?.type
  if (root !== 'nodes' || member !== 'output' || field === undefined || path.length !== 4) return undefined
  const type = findNodeType(nodes.get(String(name))?.type ?? '')
  return type && own(outputTypes(type), field)
}

/**
 * The types of the fields of each node type's output. Kept: schemas never change, and take a millisecond to convert.
 */
const known = new WeakMap<NodeType, Record<string, string>>()

function outputTypes(type: NodeType): Record<string, string> {
  const found = known.get(type)
  if (found) return found
  const { properties = {} } = z.toJSONSchema(type.output, { unrepresentable: 'any' })
  const types = Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]) =>
      typeof property === 'object' && typeof property.type === 'string' ? [[name, property.type]] : [],
    ),
  )
  known.set(type, types)
  return types
}

const own = <T>(values: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined
