import { argumentOf } from '../../api/mcp/arguments.ts'
import { DEFAULT_ACTIONS, type Operation, toOperations } from '../../api/mcp/operations.ts'
import { routes } from '../../api/v1/route-table.ts'
import { type Json, rawMcp } from '../support/mcp.ts'
import { bodyOf, filled, tablesOf } from '../support/route-paths.ts'
import type { Ground } from './ground.ts'

/** The operations of the tools, derived from the route table. */
export const { operations } = toOperations(routes)

export type ToolCall = [tool: string, given: Json]

/** What a call came to. */
export interface Called {
  /** The type of the error of /v1; `protocol` for one of the protocol; undefined for a success. */
  error: string | undefined
  result: Json | undefined
  text: string
}

/** Sends a message of the protocol. */
export async function sendMcp(
  { send }: Ground,
  key: string,
  method: string,
  params: Json,
  capabilities: object = {},
): Promise<Called> {
  const { headers, body } = rawMcp(method, params, { capabilities })
  const { text } = await send('POST', '/mcp', { ...headers, Authorization: `Bearer ${key}` }, body)
  const { result, error } = JSON.parse(text) as Json
  return { error: error ? 'protocol' : result?.structuredContent?.error?.type, result, text }
}

export const callTool = (
  ground: Ground,
  key: string,
  [name, given]: ToolCall,
  more: Json = {},
  capabilities: object = {},
): Promise<Called> => sendMcp(ground, key, 'tools/call', { name, arguments: given, ...more }, capabilities)

/** A call that reaches an operation: values for its path, the example of its route, and its confirmation. */
export function callOf(operation: Operation, ids: Record<string, string>): ToolCall {
  const { tool, kind, action, pathArguments, route, body, confirmation } = operation
  const isNested = tool in DEFAULT_ACTIONS
  const example = Object.entries((bodyOf(route) as { body?: Json }).body ?? {})
  const members = example
    .filter(([name]) => name !== 'confirm' && body.includes(name))
    .map(([name, value]) => [isNested ? name : argumentOf(operation, name), value])
  const path = Object.entries(pathArguments).map(([argument, name]) => [argument, filled(`{${name}}`, ids)])
  const given = Object.fromEntries(members)
  const selected =
    action === 'list_related'
      ? { kind, related_to: { kind: 'contacts', id: ids.entity_id } }
      : { ...(kind !== undefined && { kind }), action, ...Object.fromEntries(path) }
  return [
    tool,
    {
      ...selected,
      ...(!isNested ? given : members.length > 0 && { fields: given }),
      ...(confirmation && { confirm: true }),
    },
  ]
}

/** The parameters of an operation that are ids, each with its table. */
export const tablesOfOperation = ({ route, fixed }: Operation): [parameter: string, table: string][] =>
  tablesOf(route.path.replace(/\{(\w+)\}/g, (parameter, name) => fixed[name] ?? parameter))
