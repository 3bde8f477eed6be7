import { z } from 'zod'
import { findNodeType } from '../nodes/index.ts'
import type { NodeSpec } from './types.ts'
import type { ValidationContext } from './validate.ts'

/** The fields that a node's output can have; undefined where that cannot be known. */
export function knownOutput(node: NodeSpec, context: ValidationContext): string[] | undefined {
  if (node.type === 'set_fields')
    return isObject(node.config.fields) ? Object.keys(node.config.fields) : undefined
  if (node.type === 'crm_manager') return recordOutput(node.config, context)
  const type = findNodeType(node.type)
  if (!type) return undefined
  const schema = z.toJSONSchema(type.output, { unrepresentable: 'any' })
  return schema.additionalProperties === false ? Object.keys(schema.properties ?? {}) : undefined
}

function recordOutput(config: Record<string, unknown>, context: ValidationContext): string[] | undefined {
  switch (config.operation) {
    case 'create':
    case 'get':
    case 'update': {
      const { entity } = config
      const known =
        typeof entity === 'string' && Object.hasOwn(context.entities, entity)
          ? context.entities[entity]
          : undefined
      return known && [...known.readable]
    }
    case 'search':
    case 'list_related':
      return ['data', 'has_more']
    case 'upsert':
      return ['record', 'created']
    default:
      return undefined
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
