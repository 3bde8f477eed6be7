import {
  type CompleteRequestParams,
  type CompleteResult,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server'
import { toRequest } from './arguments.ts'
import type { ToolDeps } from './call-tool.ts'
import type { Operation } from './operations.ts'
import { argumentsOfPrompt } from './prompts.ts'
import { isResourceTemplate, kindsOf } from './resources.ts'

/** Proposals for the arguments of prompts and the parameters of resource templates, from what the key may list. */

/** Where the values of an argument come from: a list of /v1. */
interface Source {
  operation: string
  /** The parameter that takes what was typed; without it, proposals begin with what was typed. */
  search?: string
  /** The member of each item that is the value. */
  value: string
}

const SOURCES: Readonly<Record<string, Source>> = {
  node_type: { operation: 'listNodeTypes', search: 'search', value: 'node_type' },
  template_id: { operation: 'listTemplates', search: 'search', value: 'template_id' },
  workflow_id: { operation: 'listWorkflows', search: 'q', value: 'workflow_id' },
  run_id: { operation: 'listRuns', value: 'run_id' },
}

/** The protocol's greatest number of values in an answer. */
const MAX_VALUES = 100

/**
 * Answers `completion/complete`: ids whose names contain what was typed, or values that begin with it. Arguments in free
 * text have no proposals. Throws for an unknown prompt or template.
 */
export async function complete(
  deps: ToolDeps,
  tools: ReadonlySet<string>,
  { ref, argument }: CompleteRequestParams,
): Promise<CompleteResult> {
  const isKnown =
    ref.type === 'ref/prompt'
      ? argumentsOfPrompt(tools, ref.name)?.includes(argument.name)
      : isResourceTemplate(ref.uri, argument.name, deps)
  if (!isKnown)
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'there is no such argument: see prompts/list and resources/templates/list',
    )
  const found = await valuesOf(deps, argument.name, argument.value)
  return { completion: { values: found.slice(0, MAX_VALUES), hasMore: found.length > MAX_VALUES } }
}

async function valuesOf(deps: ToolDeps, name: string, typed: string): Promise<string[]> {
  const begins = (value: string) => value.startsWith(typed)
  if (name === 'kind') return kindsOf(deps).filter(begins)
  if (name === 'topic') return topicsOf(deps.visible).filter(begins)
  const source = SOURCES[name]
  const operation = source && deps.visible.find(({ route }) => route.id === source.operation)
  if (!operation) return []
  const { search, value } = source
  const pages = operation.query.includes('limit') ? { limit: MAX_VALUES } : {}
  const given = { ...pages, ...(search && typed && { [search]: typed }) }
  const { status, body } = await deps.request(toRequest(operation, given))
  if (status >= 400) return []
  const values = (body.data as Record<string, string>[]).map((item) => item[value]!)
  return search ? values : values.filter(begins)
}

/** The topics that the operation of the guide accepts. */
function topicsOf(operations: readonly Operation[]): string[] {
  const guide = operations.find(({ route }) => route.id === 'getAuthoringGuide')
  const { topic } = (guide?.route.query as { shape?: Record<string, unknown> })?.shape ?? {}
  return [...((topic as { unwrap(): { options: readonly string[] } } | undefined)?.unwrap().options ?? [])]
}
