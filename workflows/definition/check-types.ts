import { z } from 'zod'
import { type Reference, references } from '../expressions/references.ts'
import { findNodeType } from '../nodes/index.ts'
import { checkConfig } from './config.ts'
import { type Problem, pointer } from './errors.ts'
import type { Lowered } from './lower.ts'
import type { Definition } from './types.ts'

/** One sample of each JSON Schema type: a setting that accepts the sample accepts the type. */
const SAMPLES: Record<string, unknown> = {
  string: 'x',
  number: 1,
  integer: 1,
  boolean: true,
  object: {},
  array: [],
}

/** Checks that each setting accepts the type of its value if that is one whole placeholder of a known type. */
export function checkTypes({ definition, nodePath }: Lowered): Problem[] {
  return definition.nodes.flatMap((node): Problem[] => {
    const type = findNodeType(node.type)
    if (!type) return []
    return placeholders(node.config).flatMap(({ text, path }): Problem[] => {
      const valueType = typeOf(text, definition)
      if (valueType === undefined || !Object.hasOwn(SAMPLES, valueType)) return []
      const issues = checkConfig(type.config, replaced(node.config, path, SAMPLES[valueType]))
      const refused = issues.some(
        (issue) => issue.code === 'invalid_type' && pointer(...issue.path) === pointer(...path),
      )
      if (!refused) return []
      const setting = path.join('.')
      return [
        {
          code: 'type_mismatch',
          message: `${text} is of type ${valueType}, which ${setting} of a ${node.type} does not accept`,
          path: `${nodePath(node.id)}/config${pointer(...path)}`,
          node_id: node.id,
        },
      ]
    })
  })
}

function typeOf(text: string, definition: Definition): string | undefined {
  try {
    const [only, ...others] = references(text)
    return only?.whole && !only.dynamic && others.length === 0 ? referenceType(only, definition) : undefined
  } catch {
    // Reported as placeholder_syntax already.
    return undefined
  }
}

function referenceType({ path }: Reference, definition: Definition): string | undefined {
  const [root, name, member, field] = path.map(String)
  if (root === 'inputs' && path.length === 2) return name && own(definition.inputs, name)?.type
  if (root !== 'nodes' || member !== 'output' || field === undefined || path.length !== 4) return undefined
  const type = findNodeType(definition.nodes.find(({ id }) => id === name)?.type ?? '')
  if (!type) return undefined
  const property = own(z.toJSONSchema(type.output, { unrepresentable: 'any' }).properties ?? {}, field)
  return typeof property === 'object' && typeof property.type === 'string' ? property.type : undefined
}

const own = <T>(values: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined

function placeholders(value: unknown, path: string[] = []): { text: string; path: string[] }[] {
  if (typeof value === 'string') return value.includes('{{') ? [{ text: value, path }] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => placeholders(item, [...path, key]))
}

function replaced(value: unknown, [key, ...rest]: string[], by: unknown): unknown {
  if (key === undefined) return by
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === key ? replaced(item, rest, by) : item))
  return Object.fromEntries(
    Object.entries(value as object).map(([name, item]) => [
      name,
      name === key ? replaced(item, rest, by) : item,
    ]),
  )
}
