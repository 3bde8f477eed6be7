import { z } from 'zod'
import type { Grant, Lookups } from '../effects/lookups.ts'
import type { RecordQuery } from '../effects/records.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { NodeError } from '../language/node-error.ts'
import { didYouMean } from '../language/problems.ts'
import { textsIn } from '../language/texts.ts'
import { AI_TOOLS } from '../shared/limits.ts'
import { requestMessage } from '../shared/plain-words.ts'
import { kindReadBy } from '../shared/related-filters.ts'
import type { Catalogue } from './catalogue.ts'
import type { ConfigProblem } from './define.ts'

/**
 * The tools that a language model may call while it answers: reads of the organization's records, of the kinds that the
 * node names. Nothing is allowed by default. No tool writes, so that an attempt can be repeated.
 */

const limit = z.int().min(1).max(AI_TOOLS.records).optional()
const entity = z.string()

interface Tool<Args> {
  description: string
  args: z.ZodType<Args>
  /** The members of `args` that name a kind of records. */
  kinds: readonly string[]
  call(lookups: Lookups, args: Args): Promise<unknown>
}

const tool = <Args>(one: Tool<Args>): Tool<never> => one as unknown as Tool<never>

const TOOLS: Record<string, Tool<never>> = {
  search_records: tool({
    description:
      'Searches records of a kind. `q` is a full-text search; filters are `field: value` or `field[gte]: value`.',
    args: z.strictObject({
      entity,
      q: z.string().max(500).optional(),
      filters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
      sort: z.string().optional(),
      order: z.enum(['asc', 'desc']).optional(),
      limit,
    }),
    kinds: ['entity'],
    call: (lookups, { entity, limit = AI_TOOLS.records, ...query }) => {
      const given = Object.entries({ ...query, limit }).filter(([, value]) => value !== undefined)
      return lookups.search(entity, Object.fromEntries(given) as RecordQuery)
    },
  }),
  get_record: tool({
    description: 'Reads one record by its id.',
    args: z.strictObject({ entity, id: z.uuid() }),
    kinds: ['entity'],
    call: (lookups, { entity, id }) => lookups.get(entity, id),
  }),
  list_related_records: tool({
    description: 'Lists the records of the kind `target` that a record is linked to.',
    args: z.strictObject({ entity, id: z.uuid(), target: z.string(), limit }),
    kinds: ['entity', 'target'],
    call: (lookups, { entity, id, target, limit = AI_TOOLS.records }) =>
      lookups.listRelated(entity, id, target, limit),
  }),
}

const TOOL_NAMES = Object.keys(TOOLS) as [string, ...string[]]

/** The schema of `tools` in a config. */
export const toolsSchema = z
  .array(
    z.strictObject({
      tool: z.enum(TOOL_NAMES).describe('What the model may do.'),
      entities: z
        .array(z.string().min(1))
        .min(1)
        .max(20)
        .describe('The kinds of records for which it may, by plural name.'),
    }),
  )
  .max(TOOL_NAMES.length)
  .default([])
  .describe(
    `What the model may call while it answers, such as \`[{tool: search_records, entities: [contacts]}]\`; default: nothing. The tools ${TOOL_NAMES.join(', ')} read records of the organization, at most ${AI_TOOLS.records} at once; there is none that writes. The endpoint sees what they read. Without placeholders.`,
  )

/** Checks that the kinds exist and have no placeholders: the data of a run must not decide what the model may read. */
export function toolProblems(tools: unknown, { entities }: Catalogue): ConfigProblem[] {
  const computed = textsIn(tools, ['tools']).filter(({ text }) => hasPlaceholder(text))
  if (computed.length > 0)
    return computed.map(({ path }) => ({
      code: 'invalid_config',
      message: 'tools have no placeholders: what the model may read does not depend on the run',
      path,
      hint: 'name the tools and the kinds of records',
    }))
  const known = Object.keys(entities)
  return textsIn(tools, ['tools']).flatMap(({ text, path }): ConfigProblem[] =>
    path.at(-2) !== 'entities' || known.includes(text)
      ? []
      : [
          {
            code: 'unknown_entity',
            message: `there is no record kind ${text.slice(0, 100)}`,
            path,
            hint: didYouMean(text, known).hint ?? `one of ${known.join(', ')}`,
          },
        ],
  )
}

/** The scopes that a test of the node needs. */
export function toolScopes(tools: unknown, { entities }: Catalogue): string[] {
  const named = textsIn(tools).map(({ text }) => text)
  const kinds = Object.keys(entities)
  const read = named.some(hasPlaceholder) ? kinds : kinds.filter((kind) => named.includes(kind))
  return read.map((kind) => `${kind}:read`)
}

/** The tools in the form of the request. */
export const functionsOf = (grants: Grant[]) =>
  grants.map(({ tool, entities }) => {
    const { args, description, kinds } = TOOLS[tool]!
    const { $schema: _, ...parameters } = z.toJSONSchema(args, { io: 'input' })
    const properties = Object.fromEntries(
      Object.entries(parameters.properties ?? {}).map(([name, schema]) => [
        name,
        kinds.includes(name) ? { type: 'string', enum: entities } : schema,
      ]),
    )
    return {
      type: 'function',
      function: { name: tool, description, parameters: { ...parameters, properties } },
    }
  })

/** A call that the model requested. */
export interface AskedCall {
  id: string
  function: { name: string; arguments: string }
}

/** The outcome of a call, for the output of the node. */
export interface MadeCall {
  tool: string
  arguments: Record<string, unknown> | null
  /** Null if the call was made. */
  error: string | null
}

/** Makes a call if the node allows it. @returns the text for the model: the result, or the reason of the refusal. */
export async function answerCall(
  lookups: Lookups,
  grants: Grant[],
  { function: asked }: AskedCall,
): Promise<{ content: string; made: MadeCall }> {
  const made: MadeCall = { tool: asked.name.slice(0, 100), arguments: null, error: null }
  try {
    const args = argumentsOf(asked)
    made.arguments = args
    const grant = grants.find(({ tool }) => tool === asked.name)
    const found = TOOLS[asked.name]
    if (!grant || !found) throw new NodeError('not_allowed', `There is no tool ${made.tool}.`)
    const parsed = found.args.safeParse(args)
    if (!parsed.success) {
      const wrong = parsed.error.issues.map((issue) => `${issue.path.join('.')} ${requestMessage(issue)}`)
      throw new NodeError('invalid_arguments', wrong.join('; ').slice(0, 500))
    }
    for (const name of found.kinds)
      if (!grant.entities.includes(String(args[name])))
        throw new NodeError('not_allowed', `${name} must be one of ${grant.entities.join(', ')}.`)
    for (const name of Object.keys(Object(args.filters ?? {}))) {
      const kind = kindReadBy(name.split('[')[0]!)
      if (kind && !grant.entities.includes(kind))
        throw new NodeError('not_allowed', `${name.slice(0, 100)} reads ${kind}, which is not allowed.`)
    }
    return { content: textOf(await found.call(lookups, parsed.data)), made }
  } catch (error) {
    if (!(error instanceof NodeError)) throw error
    made.error = `${error.code}: ${error.message}`.slice(0, 500)
    return { content: JSON.stringify({ error: made.error }), made }
  }
}

function argumentsOf({ arguments: text }: AskedCall['function']): Record<string, unknown> {
  if (text.length > AI_TOOLS.argumentCharacters)
    throw new NodeError('invalid_arguments', 'The arguments are too long.')
  try {
    const args: unknown = JSON.parse(text || '{}')
    return z.record(z.string(), z.unknown()).parse(args)
  } catch {
    throw new NodeError('invalid_arguments', 'The arguments are not a JSON object.')
  }
}

/** The result as JSON, with as many records as fit. */
function textOf(result: unknown): string {
  const text = JSON.stringify(result)
  if (text.length <= AI_TOOLS.resultCharacters) return text
  const { data } = result as { data?: unknown[] }
  if (!Array.isArray(data) || data.length <= 1)
    throw new NodeError('too_large', 'The record is too large to be read.')
  return textOf({ data: data.slice(0, -1), has_more: true })
}
