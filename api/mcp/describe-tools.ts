import type { Tool } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { FILTER_OPERATORS } from '../../workflows/shared/operators.ts'
import { conversion, type Json } from '../http/openapi-schemas.ts'
import { argumentOf, takesIfMatch, takesKey, takesWait } from './arguments.ts'
import { TOOL_NAMES, type ToolName } from './grouping.ts'
import { DEFAULT_ACTIONS, namesOf, type Operation, querySchema, shapeOf } from './operations.ts'
import { TOOLS } from './tools.ts'

/** Schemas of arguments above this size, in characters, are reduced to type, values and description. */
const MAX_SCHEMA = 220
const MAX_VALUES = 200
const MAX_DESCRIPTION = 66

/** The tools as `tools/list` shows them to a key: those with an operation that its scopes allow, and only its kinds. */
export function describeTools(visible: readonly Operation[]): Tool[] {
  return TOOL_NAMES.flatMap((name) => {
    const own = visible.filter(({ tool }) => tool === name)
    return own.length === 0 ? [] : [describeTool(name, own, visible)]
  })
}

function describeTool(name: ToolName, own: readonly Operation[], visible: readonly Operation[]): Tool {
  const { title, description } = TOOLS[name]
  const isGeneric = name in DEFAULT_ACTIONS
  const readOnly = own.every((operation) => operation.readOnly)
  return {
    name,
    title,
    description: [description, isGeneric ? actionsByKind(own) : '', `Example: ${exampleOf(name, own)}`]
      .filter(Boolean)
      .join('\n'),
    inputSchema: {
      type: 'object',
      ...(isGeneric ? genericArguments(name, own) : ruledArguments(own, visible)),
    },
    outputSchema: OUTPUT,
    annotations: {
      readOnlyHint: readOnly,
      destructiveHint: own.some(
        ({ route, confirmation }) => route.method === 'DELETE' || confirmation === 'added',
      ),
      idempotentHint: readOnly || name === 'delete_record' || name === 'link_records',
      openWorldHint: own.some(({ reachesOutside }) => reachesOutside),
    },
  }
}

/** The same for all tools: the other members depend on the operation, and on the kind. */
const OUTPUT: NonNullable<Tool['outputSchema']> = {
  type: 'object',
  properties: {
    object: { type: 'string' },
    data: { type: 'array' },
    next_cursor: { type: ['string', 'null'] },
    error: { type: 'object' },
  },
}

function exampleOf(name: ToolName, own: readonly Operation[]): string {
  const [first] = own
  const { defaults = [], example } = TOOLS[name]
  const shown = own.find(({ action, route }) => defaults.includes(action) && route.example) ?? first!
  const { confirm: _, ...given } = (example ?? shown.route.example ?? {}) as Json
  return JSON.stringify(given)
}

/** `contacts, deals: update, restore, merge (from)`: a line for each group of kinds with the same actions. */
function actionsByKind(own: readonly Operation[]): string {
  const kinds = new Map<string, string[]>()
  for (const operation of own) {
    const { kind, action, tool, route } = operation
    const isDefault = action === DEFAULT_ACTIONS[tool]
    // The fields of the kinds of records are many: describe_records has them.
    const isRecord = route.path.startsWith('/objects/') && isDefault
    const fields = route.method === 'GET' || isRecord ? [] : operation.body
    const parents = Object.keys(operation.pathArguments).filter(
      (name) => name !== 'id' && !name.startsWith('related'),
    )
    const needs = [...parents, ...fields.map((name) => (fields.length > 8 ? '' : name))].filter(Boolean)
    if (action === 'list_related') continue
    kinds.set(kind!, [
      ...(kinds.get(kind!) ?? []),
      needs.length > 0 ? `${action} (${needs.join(', ')})` : action,
    ])
  }
  const groups = new Map<string, string[]>()
  for (const [kind, actions] of kinds) {
    const line = actions.join(', ')
    if (line === DEFAULT_ACTIONS[own[0]!.tool]) continue
    groups.set(line, [...(groups.get(line) ?? []), kind])
  }
  return groups.size === 0
    ? ''
    : [
        'Kinds with further actions or arguments:',
        ...[...groups].map(([line, names]) => `${names.join(', ')}: ${line}`),
      ].join('\n')
}

/** The arguments of a generic tool: the kind, an id, and objects for what depends on the kind. */
function genericArguments(name: ToolName, own: readonly Operation[]) {
  const kinds = [...new Set(own.map(({ kind }) => kind!))]
  const actions = [...new Set(own.map(({ action }) => action))].filter((action) => action !== 'list_related')
  const others = new Set(own.flatMap(({ pathArguments }) => Object.keys(pathArguments)))
  const hasId = others.delete('id')
  const related = others.delete('related_kind') && others.delete('related_id')
  const records = own.filter(({ action }) => action === 'list_related').map(({ kind }) => kind!)
  const controls = own.find(({ action }) => action === 'list_related')
  const list = own.find(({ action }) => action === 'list')
  const writes = own.some(({ readOnly }) => !readOnly)
  const hasBody = name === 'create_record' || name === 'update_record'
  return {
    properties: {
      kind: { type: 'string', enum: kinds },
      ...(actions.length > 1 && {
        action: { type: 'string', enum: actions, description: `Default: ${DEFAULT_ACTIONS[name]}.` },
      }),
      ...(hasId && { id: { type: 'string', description: 'The id of the record or resource.' } }),
      ...Object.fromEntries(
        [...others].map((argument) => [argument, { type: 'string', description: parentNote(argument) }]),
      ),
      ...(related && {
        related_to: {
          type: 'object',
          description: 'Only records associated with this one.',
          properties: { kind: { type: 'string', enum: records }, id: { type: 'string' } },
          required: ['kind', 'id'],
        },
      }),
      ...(name === 'search_records' && controlArguments(controls ?? list!)),
      ...(name === 'search_records' && { filters: FILTERS }),
      ...(name === 'delete_record' && own.some(({ query }) => query.length > 0) && { filters: PARAMETERS }),
      ...(hasBody && { fields: FIELDS }),
      ...(writes && headerArguments(own)),
    },
    required: ['kind', ...(name === 'get_record' || name === 'delete_record' ? ['id'] : [])],
  }
}

/** Arguments that work, but that a better one replaces: `cursor`. */
const UNSHOWN = ['offset']

const parentNote = (argument: string) =>
  argument === 'entity' ? 'The kind of record of a custom field.' : `For kinds below it: ${argument}.`

const FIELDS = {
  type: 'object',
  description: 'The members to write, or the input of the action. Their names and types: describe_records.',
}
const PARAMETERS = { type: 'object', description: 'Further parameters of the action.' }
const FILTERS = {
  type: 'object',
  description:
    'Filters by field: {"stage": "won", "amount[gte]": 1000, "tags[has]": "vip", "owner_id[is_null]": true, "custom_fields.tier[in]": ["gold", "silver"]}. Operators: ' +
    FILTER_OPERATORS.filter((one) => one !== 'eq').join(' '),
}

function controlArguments(operation: Operation) {
  const names = operation.query.filter((name) => name !== 'filters' && !UNSHOWN.includes(name))
  const shape = shapeOf(querySchema(operation.route.query))
  return {
    ...Object.fromEntries(names.map((name) => [name, schemaOf(shape[name]!)])),
    ...(names.includes('fields') && {
      fields: { type: 'array', items: { type: 'string' }, description: 'Only these fields.' },
    }),
  }
}

/** The arguments of a tool with a rule: those of its operations, side by side. */
function ruledArguments(own: readonly Operation[], visible: readonly Operation[]) {
  const properties: Record<string, Json> = {}
  const required = own.map((operation) => {
    const { route, pathArguments, fixed, kind } = operation
    for (const name of Object.keys(pathArguments))
      merge(properties, name, schemaOf(shapeOf(route.params)[name]))
    for (const [schema, names] of [
      [querySchema(route.query), operation.query],
      [route.body, operation.body],
    ] as const) {
      const shape = shapeOf(schema)
      for (const name of names)
        if (name !== 'confirm' && !UNSHOWN.includes(name))
          merge(properties, argumentOf(operation, name), schemaOf(shape[name]!))
    }
    if (kind) merge(properties, 'kind', { type: 'string' })
    return { names: [...Object.keys(pathArguments), ...requiredIn(operation)], fixed }
  })
  // What has kinds describes them: also those whose arguments the routes alone describe.
  if (own.some(({ kind }) => kind))
    properties.kind = { type: 'string', description: 'The kind to describe.', enum: kindsOf(visible) }
  const actions = [...new Set(own.map(({ action }) => action))]
  const always = Object.keys(properties).filter((name) => required.every(({ names }) => names.includes(name)))
  return {
    properties: {
      ...(actions.length > 1 && { action: { type: 'string', enum: actions, description: signatures(own) } }),
      ...properties,
      ...(own.some(({ readOnly }) => !readOnly) && headerArguments(own)),
    },
    ...(always.length > 0 && { required: always }),
  }
}

/** `get_run (run_id): Retrieve a run`, a line for each action. */
function signatures(own: readonly Operation[]): string {
  const { defaults = [] } = TOOLS[own[0]!.tool]
  const shown = new Map(own.map((operation) => [operation.action, operation]))
  const lines = [...shown.values()].map((operation) => {
    const { action, pathArguments, route, body } = operation
    const required = [...Object.keys(pathArguments), ...requiredIn(operation)]
    const others = body.filter((name) => name !== 'confirm').map((name) => argumentOf(operation, name))
    const optional = others.filter((name) => !required.includes(name))
    const names = [...required, ...optional.map((name) => `${name}?`)]
    const signature = `${action}${names.length > 0 ? ` (${names.join(', ')})` : ''}`
    return operation.kind || isSaid(action, route.summary) ? signature : `${signature}: ${route.summary}`
  })
  const note = defaults.length > 0 ? ['Without it, the arguments decide.'] : []
  return [...note, ...lines].join('\n')
}

/** Whether the name of an action says as much as its summary: `list_run_batches`, "List the run batches". */
function isSaid(action: string, summary: string): boolean {
  const words = action.split('_')
  const said = summary.toLowerCase().split(' ')
  return said.every((word) => words.includes(word) || FILLERS.includes(word))
}

const FILLERS = ['a', 'an', 'the', 'of', 'to', 'by', 'retrieve']

/** The arguments that the operation's body requires. */
function requiredIn(operation: Operation): string[] {
  const { body: schema } = operation.route
  if (!schema) return []
  const shape = shapeOf(schema)
  return operation.body
    .filter((name) => !shape[name]!.safeParse(undefined).success)
    .map((name) => argumentOf(operation, name))
}

/** The arguments that /v1 takes as headers, and the confirmation. */
function headerArguments(own: readonly Operation[]) {
  return {
    ...(own.some(({ confirmation }) => confirmation) && {
      confirm: {
        type: 'boolean',
        description: 'true once a person has agreed to the preview.',
      },
    }),
    ...(own.some(takesKey) && {
      idempotency_key: { type: 'string', description: 'Repeats with it take effect once.' },
    }),
    ...(own.some(takesIfMatch) && {
      if_version: { type: 'integer', description: 'Refuse at another version.' },
    }),
    ...(own.some(takesWait) && {
      wait_seconds: { type: 'integer', minimum: 1, maximum: 30, description: 'Wait so long for the end.' },
    }),
  }
}

/** Shows the first schema of a member that two operations have, if the schemas differ by its type only. */
function merge(properties: Record<string, Json>, name: string, schema: Json): void {
  const before = properties[name]
  if (!before) properties[name] = schema
  else if (JSON.stringify(before) !== JSON.stringify(schema)) {
    const { type, description } = before
    properties[name] = {
      ...(type === schema.type && type !== undefined && { type }),
      ...(description !== undefined && { description }),
    }
  }
}

/** Bounds that /v1 checks, with a message: in a list of tools they take more room than they help. */
const OMITTED = [
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'pattern',
  'additionalProperties',
  'maximum',
  'minimum',
]

/** The JSON Schema of a member, small enough for a list of tools. */
function schemaOf(schema: z.ZodType | undefined): Json {
  if (!schema) return { type: 'string' }
  const { $schema: _, $defs, $ref, ...json } = z.toJSONSchema(schema, conversion('input')) as Json
  const referred = typeof $ref === 'string' ? (($defs as Json)[$ref.split('/').at(-1)!] as Json) : {}
  const { default: __, examples: ___, ...whole }: Json = { ...referred, ...json }
  for (const name of OMITTED) delete whole[name]
  if (whole.format === 'uuid') delete whole.format
  if (typeof whole.description === 'string') whole.description = shortened(whole.description)
  const isSelfContained = !$defs || (typeof $ref === 'string' && Object.keys($defs).length === 1)
  if (isSelfContained && JSON.stringify(whole).length <= MAX_SCHEMA) return whole
  const { type, description, enum: values } = whole
  return {
    ...(type !== undefined && { type }),
    ...(values !== undefined && JSON.stringify(values).length <= MAX_VALUES && { enum: values }),
    ...(description !== undefined && { description }),
  }
}

const shortened = (text: string) =>
  text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION).replace(/\s\S*$/, '')} …`

/** The JSON Schemas of the arguments of each action of a kind that has no schema operation. */
export function describeActions(operations: readonly Operation[]) {
  return operations.map((operation) => {
    const { tool, action, route, pathArguments, query } = operation
    return {
      tool,
      action,
      summary: route.summary,
      ...(route.description && { description: route.description }),
      arguments: Object.keys(pathArguments),
      ...(query.length > 0 && { parameters: toJson(querySchema(route.query)!) }),
      ...(namesOf(route.body).length > 0 && { fields: toJson(route.body!) }),
    }
  })
}

export const kindsOf = (operations: readonly Operation[]) => [
  ...new Set(operations.flatMap(({ kind }) => (kind ? [kind] : []))),
]

const toJson = (schema: z.ZodType) => {
  const { $schema: _, ...json } = z.toJSONSchema(schema, conversion('input')) as Json
  return json
}
