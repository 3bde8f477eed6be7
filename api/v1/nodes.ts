import { z } from 'zod'
import { notFound } from '../../db/model/errors.ts'
import { EFFECT_CLASSES } from '../../workflows/language/definition.ts'
import type { NodeType } from '../../workflows/nodes/define.ts'
import { findNodeType, nodeTypes } from '../../workflows/nodes/index.ts'
import { searchNodeTypes } from '../../workflows/nodes/search.ts'
import { nearest } from '../../workflows/shared/nearest.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'

const summary = z
  .object({
    object: z.literal('node_type'),
    node_type: z.string(),
    category: z.string(),
    title: z.string(),
    description: z.string(),
    effect: z.enum(EFFECT_CLASSES).meta({
      description: 'The effect of a node; if the effect depends on the config, that of the example.',
    }),
    deprecated: z
      .string()
      .optional()
      .meta({ description: 'What to use instead. Present only if the type should not be used any more.' }),
    output_handles: z.array(
      z.object({ name: z.string(), description: z.string() }).meta({ id: 'OutputHandle' }),
    ),
  })
  .meta({ id: 'NodeTypeSummary' })

const detail = summary
  .extend({
    config_schema: z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema of the config.' }),
    output_schema: z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema of the output.' }),
    example: z.object({
      config: z.record(z.string(), z.unknown()),
      inputs: z.record(z.string(), z.unknown()).optional(),
      output: z.unknown(),
      handle: z.string().optional(),
    }),
  })
  .meta({ id: 'NodeType' })

/** The known categories, for the OpenAPI document only: the list accepts unknown ones. */
const CATEGORIES = [...new Set(Object.values(nodeTypes).map(({ category }) => category))].sort()

/** The catalogue of node types. `node-tests.ts` tests a node. */
export const nodeRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/workflows/nodes',
    scope: 'workflows:read',
    id: 'listNodeTypes',
    tag: 'Node types',
    summary: 'List node types',
    description:
      'Lists all node types on one page, or those of one category, or those that `search` finds, the best first.',
    query: z.object({
      category: z
        .string()
        .optional()
        .meta({ description: `One of ${CATEGORIES.join(', ')}.` }),
      search: z
        .string()
        .max(200)
        .optional()
        .meta({
          description:
            'Words that each occur in the name, the title, the description or the category, or in the name of a similar node in other products.',
          examples: ['send mail'],
        }),
    }),
    response: {
      status: 200,
      schema: listEnvelope(summary),
    },
    handler: async ({ query }) => {
      const types = query.search === undefined ? Object.values(nodeTypes) : searchNodeTypes(query.search)
      const data = types
        .filter(({ category }) => query.category === undefined || category === query.category)
        .map(present)
      return wholeList(data)
    },
  }),
  route({
    method: 'GET',
    path: '/workflows/nodes/{node_type}',
    scope: 'workflows:read',
    id: 'getNodeType',
    tag: 'Node types',
    summary: 'Retrieve a node type',
    description: 'Returns the schemas of its config and output, its output handles and an example.',
    params: z.object({
      node_type: z.string().describe('A `node_type` of the list of node types.'),
    }),
    response: { status: 200, schema: detail },
    handler: async ({ params }) => {
      const type = requireNodeType(params.node_type)
      return {
        ...present(type),
        config_schema: z.toJSONSchema(type.config, { io: 'input', unrepresentable: 'any' }),
        output_schema: z.toJSONSchema(type.output, { unrepresentable: 'any' }),
        example: exampleOf(type),
      }
    },
  }),
]

/** Throws not_found. */
export function requireNodeType(name: string): NodeType {
  const type = findNodeType(name)
  if (type) return type
  const near = nearest(name, Object.keys(nodeTypes))
  throw notFound('node type', near ? `did you mean ${near}?` : 'GET /v1/workflows/nodes lists them')
}

function present(type: NodeType) {
  const { category, title, description, example } = type
  return {
    object: 'node_type' as const,
    node_type: type.type,
    category,
    title,
    description,
    effect: type.effectClass(example.config),
    ...(type.deprecated === undefined ? {} : { deprecated: type.deprecated }),
    output_handles: type.handles(example.config),
  }
}

/** The example without the answer to a waiting node, which is part of its output. */
function exampleOf({ example }: NodeType) {
  const { answer: _, ...shown } = example
  return shown
}
