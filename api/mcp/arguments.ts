import { type AppError, type Issue, invalid } from '../../db/model/errors.ts'
import { isObject } from '../../workflows/shared/is-object.ts'
import type { InnerRequest } from '../http/inner-request.ts'
import { isIdempotent } from '../http/route.ts'
import type { ToolName } from './grouping.ts'
import { DEFAULT_ACTIONS, type Operation } from './operations.ts'
import { TOOLS } from './tools.ts'

/** From the arguments of a tool call to a request of /v1. What the arguments contain, /v1 validates. */

export type Arguments = Record<string, unknown>

/** Arguments with a meaning of their own in every tool. */
const RESERVED = ['action', 'confirm', 'idempotency_key', 'if_version', 'wait_seconds']

/** The argument of a member of the query or body: another name if it would be a reserved one or a path argument. */
export const argumentOf = ({ pathArguments }: Operation, member: string): string =>
  RESERVED.includes(member) || member in pathArguments ? `body_${member}` : member

export const takesKey = ({ route }: Operation): boolean => isIdempotent(route)
export const takesIfMatch = ({ route }: Operation): boolean => route.ifMatch === true
export const takesWait = ({ route }: Operation): boolean => route.waits === true

/** The operation that the arguments select. Throws validation_error with the accepted values. */
export function selectOperation(
  operations: readonly Operation[],
  visible: readonly Operation[],
  tool: ToolName,
  given: Arguments,
): Operation {
  const own = operations.filter((one) => one.tool === tool)
  const shown = visible.filter((one) => one.tool === tool)
  const { kind } = given
  const hasKinds = own.some((one) => one.kind !== undefined)
  if (hasKinds && (kind !== undefined || tool in DEFAULT_ACTIONS) && !own.some((one) => one.kind === kind))
    throw wrong('kind', kind, namesIn(shown, 'kind'))
  const ofKind = own.filter(
    (one) => !hasKinds || one.kind === kind || (kind === undefined && one.kind === undefined),
  )
  const action = given.action ?? defaultAction(tool, ofKind, given)
  const operation = ofKind.find((one) => one.action === action)
  if (operation) return operation
  throw wrong(
    'action',
    given.action,
    namesIn(
      shown.filter((one) => ofKind.includes(one)),
      'action',
    ),
  )
}

function defaultAction(tool: ToolName, own: readonly Operation[], given: Arguments): string | undefined {
  if (given.related_to !== undefined) return 'list_related'
  if (tool in DEFAULT_ACTIONS) return DEFAULT_ACTIONS[tool]
  const { defaults = [] } = TOOLS[tool]
  const offered = defaults.flatMap((name) => own.filter(({ action }) => action === name))
  const isGiven = ({ pathArguments }: Operation) =>
    Object.keys(pathArguments).every((name) => given[name] !== undefined)
  return (offered.find(isGiven) ?? offered.at(-1) ?? (own.length === 1 ? own[0] : undefined))?.action
}

const namesIn = (operations: readonly Operation[], member: 'kind' | 'action') =>
  [...new Set(operations.flatMap((one) => one[member] ?? []))].sort()

/** The request of /v1 for the arguments of an operation. Throws validation_error. */
export function toRequest(operation: Operation, given: Arguments): InnerRequest {
  const { route, fixed, pathArguments } = operation
  const issues: Issue[] = []
  const rest = { ...given }
  const headers = takeHeaders(operation, rest, issues)
  if (rest.related_to !== undefined) takeRelated(operation, rest, issues)
  for (const name of ['action', 'kind']) if (name in rest && isSelector(operation, name)) delete rest[name]
  const parameters: Record<string, string> = { ...fixed }
  for (const [argument, name] of Object.entries(pathArguments)) {
    const value = rest[argument]
    delete rest[argument]
    if (typeof value === 'string' && value !== '') parameters[name] = value
    else issues.push(missing(argument, value))
  }
  const { query, body } = divide(operation, rest, issues)
  if (issues.length > 0) throw invalid(issues)
  const path = route.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parameters[name]!))
  return {
    method: route.method,
    path: `/v1${path}`,
    search: new URLSearchParams(query).toString(),
    headers,
    ...(body && { body }),
  }
}

/** `kind` selects the operation, unless it is a member of the request. */
const isSelector = ({ kind, query, body }: Operation, name: string) =>
  name === 'action' || kind !== undefined || !(query.includes('kind') || body.includes('kind'))

/** Divides the arguments that are left into the query and the body. */
function divide(
  { route, query: names, body: members, ...operation }: Operation,
  rest: Arguments,
  issues: Issue[],
) {
  const query: [string, string][] = []
  let body: Arguments = {}
  const { filters, fields, ...others } = rest
  const isRead = route.method === 'GET'
  const nested = operation.tool in DEFAULT_ACTIONS
  for (const [argument, value] of Object.entries(others)) {
    const member = memberOf(argument, [...names, ...members])
    if (isRead || names.includes(member)) query.push([member, toParameter(value)])
    else body[member] = value
  }
  if (filters !== undefined) {
    const isFilters = nested && isObject(filters)
    if (nested && !isFilters) issues.push(notAnObject('filters', filters))
    else if (isFilters) query.push(...toFilters(filters))
    else body.filters = filters
  }
  if (fields !== undefined) {
    if (isRead) query.push(['fields', toParameter(fields)])
    else if (!nested) body.fields = fields
    else if (isObject(fields)) body = { ...body, ...fields }
    else issues.push(notAnObject('fields', fields))
  }
  const hasBody = !isRead && (route.body !== undefined || Object.keys(body).length > 0)
  return { query, body: hasBody ? body : undefined }
}

const memberOf = (argument: string, members: readonly string[]) => {
  const member = argument.replace(/^body_/, '')
  return member !== argument && members.includes(member) && !members.includes(argument) ? member : argument
}

/** `{"amount": {"gte": 1}}` and `{"amount[gte]": 1}` are `amount[gte]=1`; a list of values is one of them. */
const toFilters = (filters: Arguments): [string, string][] =>
  Object.entries(filters).flatMap(([name, value]): [string, string][] => {
    if (isObject(value)) return Object.entries(value).map(([by, one]) => [`${name}[${by}]`, toParameter(one)])
    if (Array.isArray(value) && !name.endsWith(']')) return [[`${name}[in]`, toParameter(value)]]
    return [[name, toParameter(value)]]
  })

/** Lists are comma-separated, with quotes where a value needs them. */
const toParameter = (value: unknown): string =>
  Array.isArray(value)
    ? value.map((one) => quoted(toParameter(one))).join(',')
    : isObject(value)
      ? JSON.stringify(value)
      : String(value)

const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** Moves the arguments that are headers of /v1 out of `rest`. */
function takeHeaders(operation: Operation, rest: Arguments, issues: Issue[]): Record<string, string> {
  const headers: Record<string, string> = {}
  const take = (
    name: string,
    takes: boolean,
    header: string,
    toHeader: (value: unknown) => string | undefined,
  ) => {
    const value = rest[name]
    delete rest[name]
    if (value === undefined || value === null) return
    const text = toHeader(value)
    if (!takes)
      issues.push({ loc: ['arguments', name], msg: 'has no effect on this action', type: 'not_applicable' })
    else if (text === undefined)
      issues.push({ loc: ['arguments', name], msg: 'has an invalid value', type: 'invalid_value' })
    else headers[header] = text
  }
  take('idempotency_key', takesKey(operation), 'idempotency-key', (key) =>
    typeof key === 'string' && /^[\x20-\x7e]{1,255}$/.test(key) ? key : undefined,
  )
  take('if_version', takesIfMatch(operation), 'if-match', (version) =>
    Number.isSafeInteger(version) ? `"${version}"` : undefined,
  )
  take('wait_seconds', takesWait(operation), 'prefer', (seconds) =>
    Number.isInteger(seconds) && Number(seconds) >= 1 && Number(seconds) <= 30
      ? `wait=${seconds}`
      : undefined,
  )
  return headers
}

function takeRelated({ pathArguments }: Operation, rest: Arguments, issues: Issue[]): void {
  const { related_to: to } = rest
  delete rest.related_to
  if (!('related_id' in pathArguments))
    issues.push({
      loc: ['arguments', 'related_to'],
      msg: 'has no effect on this action',
      type: 'not_applicable',
    })
  else if (!isObject(to)) issues.push(notAnObject('related_to', to))
  else Object.assign(rest, { related_kind: to.kind, related_id: to.id })
}

const missing = (name: string, value: unknown): Issue => ({
  loc: ['arguments', name],
  msg: value === undefined || value === '' ? 'is required' : 'must be a string',
  type: value === undefined ? 'missing' : 'type_error',
})

const notAnObject = (name: string, value: unknown): Issue => ({
  loc: ['arguments', name],
  msg: `must be an object, not ${Array.isArray(value) ? 'a list' : typeof value}`,
  type: 'type_error',
})

function wrong(name: string, value: unknown, accepted: readonly string[]): AppError {
  const hint = accepted.length > 0 ? `one of ${accepted.join(', ')}` : 'the scopes of this key allow none'
  return invalid([
    {
      loc: ['arguments', name],
      msg: value === undefined ? 'is required' : 'has no such value',
      type: value === undefined ? 'missing' : 'enum',
      hint,
    },
  ])
}
