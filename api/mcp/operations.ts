import { z } from 'zod'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { isIdempotent, type Route } from '../http/route.ts'
import { allows, type Scope } from '../http/scopes.ts'
import { isOfRecords, neededScopes } from '../v1/realm.ts'
import { exclusionOf, isConsequential, reachesOutside, type ToolName, toolByRule } from './grouping.ts'

/** An operation of /v1 as a tool offers it. */
export interface Operation {
  tool: ToolName
  /** The kind of record or resource that a generic tool takes. */
  kind: string | undefined
  /** Selects the operation among those of the tool and kind. */
  action: string
  route: Route
  /** Path parameters that the kind fixes. */
  fixed: Record<string, string>
  /** The path parameters that are arguments, by the argument's name. */
  pathArguments: Record<string, string>
  query: readonly string[]
  body: readonly string[]
  /** `preview`: the operation has a preview and `confirm`. `added`: only the tool asks for a confirmation. */
  confirmation: 'preview' | 'added' | undefined
  readOnly: boolean
  reachesOutside: boolean
}

export interface Excluded {
  route: Route
  reason: string
}

/** The route of the records that are associated with a record: its kinds are arguments of their own. */
const RELATED = '/objects/{entity}/{entity_id}/{target}'

/** Divides the operations of /v1 among the tools. */
export function toOperations(routes: readonly Route[]): { operations: Operation[]; excluded: Excluded[] } {
  const excluded: Excluded[] = []
  const reached: Route[] = []
  for (const route of routes) {
    const reason = exclusionOf(route)
    if (reason === undefined) reached.push(route)
    else excluded.push({ route, reason })
  }
  const collections = collectionsOf(reached.filter(isGeneric))
  const operations = reached.flatMap((route) =>
    isGeneric(route) ? genericOperations(route, collections) : [ruledOperation(route)],
  )
  return { operations: withDistinctActions(operations), excluded }
}

const isGeneric = (route: Route) => toolByRule(route) === undefined

/** The operations that a key may call with some arguments. The gateway decides about each call. */
export const visibleTo = (scopes: ReadonlySet<Scope>, operations: readonly Operation[]): Operation[] =>
  operations.filter((operation) => isVisible(operation, scopes))

function isVisible({ route, fixed }: Operation, scopes: ReadonlySet<Scope>): boolean {
  const { scope } = route
  if (isOfRecords(scope)) return kindNames.some((kind) => allows(scopes, `${kind}:${scope.ofRecords}`))
  const allowed = (params: unknown) => neededScopes(route, params).every((needed) => allows(scopes, needed))
  if (typeof scope !== 'function') return allowed({})
  return kindNames.some((kind) => allowed({ entity: kind, target: kind, ...fixed }))
}

/** An operation of a tool with a rule: its id is the action, as `cancel_run`. */
function ruledOperation(route: Route): Operation {
  const [, kind] = /^\/objects\/(\w+)\/schema$/.exec(route.path) ?? []
  return {
    ...common(route),
    tool: toolByRule(route)!,
    kind,
    action: kind ? 'get_schema' : actionOf(route),
    fixed: {},
    pathArguments: Object.fromEntries(parametersOf(route.path).map((name) => [name, name])),
  }
}

/** Actions whose names differ from the operation's id. */
const ACTIONS: Record<string, string> = { createAssociation: 'link', deleteAssociation: 'unlink' }

const actionOf = ({ id }: Route) =>
  ACTIONS[id] ?? id.replace(/WithKey$/, '').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** An operation of a generic tool, once for each kind of record if its path names the kind. */
function genericOperations(route: Route, collections: ReadonlySet<string>): Operation[] {
  if (route.path === RELATED)
    return kindNames.map((kind) => ({
      ...common(route),
      tool: 'search_records',
      kind,
      action: 'list_related',
      fixed: { target: kind },
      pathArguments: { related_kind: 'entity', related_id: 'entity_id' },
    }))
  const ofEveryKind = route.path.startsWith('/objects/{entity}')
  const names = ofEveryKind ? kindNames : [undefined]
  return names.map((name) => genericOperation(route, collections, name))
}

function genericOperation(route: Route, collections: ReadonlySet<string>, recordKind?: string): Operation {
  const segments = route.path.split('/').slice(1)
  const length = lengthOfCollection(segments, collections)
  const rest = segments.slice(length)
  const hasItem = rest[0]?.startsWith('{') ?? false
  const verb = rest
    .filter((segment) => !segment.startsWith('{'))
    .join('_')
    .replaceAll('-', '_')
  const parameters = parametersOf(route.path).filter((name) => !(recordKind && name === 'entity'))
  const item = hasItem ? rest[0]!.slice(1, -1) : undefined
  const tool = genericTool(route, hasItem, verb)
  return {
    ...common(route),
    tool,
    kind: recordKind ?? kindOf(segments.slice(0, length)),
    action: verb === '' ? DEFAULT_ACTIONS[tool]! : verb,
    fixed: recordKind ? { entity: recordKind } : {},
    pathArguments: Object.fromEntries(parameters.map((name) => [name === item ? 'id' : name, name])),
  }
}

/** The action of an operation on a collection or item itself. */
export const DEFAULT_ACTIONS: Partial<Record<ToolName, string>> = {
  search_records: 'list',
  get_record: 'get',
  create_record: 'create',
  update_record: 'update',
  delete_record: 'delete',
}

function genericTool({ method, query }: Route, hasItem: boolean, verb: string): ToolName {
  if (method === 'DELETE') return 'delete_record'
  if (method === 'GET')
    return !hasItem || (verb !== '' && isListQuery(query)) ? 'search_records' : 'get_record'
  return method === 'POST' && !hasItem && verb === '' ? 'create_record' : 'update_record'
}

const isListQuery = (query: Route['query']) => namesOf(querySchema(query)).includes('limit')

/** The paths that have items below them. `{entity}` is the kind of a collection, not an item. */
function collectionsOf(routes: readonly Route[]): Set<string> {
  const collections = routes.flatMap(({ path }) => {
    const segments = path === RELATED ? [] : path.split('/').slice(1)
    return segments.flatMap((segment, i) => (isItem(segment) ? [segments.slice(0, i).join('/')] : []))
  })
  return new Set(collections)
}

const isItem = (segment: string) => segment.startsWith('{') && segment !== '{entity}'

/** The number of segments of the longest collection that the path begins with; all of them if there is none. */
function lengthOfCollection(segments: string[], collections: ReadonlySet<string>): number {
  for (let length = segments.length; length > 0; length--)
    if (collections.has(segments.slice(0, length).join('/'))) return length
  return segments.length
}

/** `contacts`, `custom_fields`, `webhooks_incoming_logs`. */
const kindOf = (segments: string[]) =>
  segments
    .filter((segment, i) => !segment.startsWith('{') && !(i === 0 && segment === 'objects'))
    .join('_')
    .replaceAll('-', '_')

const parametersOf = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)

function common(route: Route) {
  const body = namesOf(route.body)
  const writesNothing = typeof route.scope === 'string' && route.scope.endsWith(':read')
  return {
    route,
    query: namesOf(querySchema(route.query)),
    body,
    confirmation: body.includes('confirm')
      ? ('preview' as const)
      : isConsequential(route)
        ? ('added' as const)
        : undefined,
    readOnly: route.method === 'GET' || writesNothing,
    reachesOutside: reachesOutside(route),
  }
}

/** Whether the operation takes an Idempotency-Key. */
export const takesKey = ({ route }: Operation): boolean => isIdempotent(route)

export const querySchema = (query: Route['query']): z.ZodType | undefined =>
  query === undefined || query instanceof z.ZodType ? query : query.documented

/** The names of the members of an object schema. */
export const namesOf = (schema: z.ZodType | undefined): string[] => Object.keys(shapeOf(schema))

/** The members of an object schema, also inside of defaults and transformations. */
export function shapeOf(schema: z.ZodType | undefined): Record<string, z.ZodType> {
  if (schema instanceof z.ZodObject) return schema.shape as Record<string, z.ZodType>
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional)
    return shapeOf(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodPipe) {
    const before = shapeOf(schema.in as z.ZodType)
    return Object.keys(before).length > 0 ? before : shapeOf(schema.out as z.ZodType)
  }
  return {}
}

export const nameOf = ({ tool, kind, action }: Pick<Operation, 'tool' | 'kind' | 'action'>) =>
  [tool, kind, action].filter(Boolean).join(' ')

/** The second of two operations with the same arguments gets its id as action. */
function withDistinctActions(operations: readonly Operation[]): Operation[] {
  const seen = new Set<string>()
  return operations.map((operation) => {
    const distinct = seen.has(nameOf(operation))
      ? { ...operation, action: actionOf(operation.route) }
      : operation
    seen.add(nameOf(distinct))
    return distinct
  })
}
