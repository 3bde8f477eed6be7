import assert from 'node:assert/strict'
import type { AppRoute, Route } from '../../api/http/route.ts'
import type { Scope } from '../../api/http/scopes.ts'
import { ANY } from '../../api/http/upload.ts'
import type { MemberRole } from '../../db/model/access/roles.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'

/** What walks the route tables: the promised scopes of each operation, and values for its path. */

const KINDS = kindNames.join('|')
const of = (kind: string, level: string) => `${kind}:${level}` as Scope

/** An erasure lists what still names the person. */
const HELD_OF_A_PERSON: Scope[] = [
  ...kindNames.map((kind) => of(kind, 'read')),
  'workflows:read',
  'knowledge:read',
  'webhooks:read',
]

/**
 * The promised scopes by path, independent of the route table: the first matching pattern. A route without one fails
 * the test.
 */
const PROMISED: [RegExp, (isRead: boolean, ...parts: string[]) => Scope[]][] = [
  [/^\/(?:me|scopes|users|objects|events)$/, () => []],
  [
    /^\/objects\/contacts\/[^/]+\/export$/,
    () => [...kindNames.map((kind) => of(kind, 'read')), 'workflows:read', 'webhooks:read'],
  ],
  [/^\/objects\/(\w+)\/[^/]+\/reveal$/, (_, kind) => [of(kind!, 'read'), of('records', 'reveal')]],
  [
    /^\/objects\/contacts\/[^/]+\/erase$/,
    () => ['contacts:write', ...HELD_OF_A_PERSON, 'workflows:run', 'webhooks:write'],
  ],
  [/^\/erasures/, () => HELD_OF_A_PERSON],
  [/^\/objects\/(\w+)\/[^/]+\/associations\/(\w+)\//, (_, a, b) => [of(a!, 'write'), of(b!, 'write')]],
  [new RegExp(`^/objects/(\\w+)/[^/]+/(${KINDS})$`), (_, a, b) => [of(a!, 'read'), of(b!, 'read')]],
  [/^\/(?:objects|custom-fields)\/(\w+)/, (isRead, kind) => [of(kind!, isRead ? 'read' : 'write')]],
  // Lists show the kinds that the key can read. The other operations use contacts, as do the examples and rows of this
  // test.
  [/^\/(?:imports|exports|views|lists)$/, (isRead) => (isRead ? [] : ['contacts:write'])],
  [/^\/(?:pipelines|exchange-rates)/, (isRead) => [isRead ? 'deals:read' : 'deals:write']],
  [/^\/files\//, (isRead) => [isRead ? 'contacts:read' : 'contacts:write']],
  [/^\/bulk-jobs$/, () => []],
  [/^\/(?:views|lists|bulk-jobs)\//, (isRead) => [isRead ? 'contacts:read' : 'contacts:write']],
  [/^\/exports\//, () => ['contacts:read']],
  [/^\/imports\//, (isRead) => [isRead ? 'contacts:read' : 'contacts:write']],
  [/^\/workflows\/[^/]+\/samples/, (isRead) => [isRead ? 'workflows:run' : 'workflows:author']],
  [/^\/workflows\/(?:.+\/(?:run|test|backfill)|run-by-name|test)$/, () => ['workflows:run']],
  [/^\/workflows\/validate$|^\/runs$/, () => ['workflows:read']],
  [/^\/(?:runs|run-batches)/, () => ['workflows:run']],
  [/^\/analytics\/reports/, (isRead) => [isRead ? 'analytics:read' : 'analytics:write']],
  [/^\/analytics\//, () => ['analytics:read']],
  [/^\/workflows/, (isRead) => [isRead ? 'workflows:read' : 'workflows:author']],
  [
    /^\/knowledge\/collections\/[^/]+\/(?:embedding|documents\/fetch)$/,
    () => ['knowledge:write', 'webhooks:write'],
  ],
  [/^\/knowledge/, (isRead) => [isRead ? 'knowledge:read' : 'knowledge:write']],
  [/^\/(?:webhooks|deliveries)/, (isRead) => [isRead ? 'webhooks:read' : 'webhooks:write']],
]

/** The promised scopes of an operation. */
export function promisedFor(method: string, path: string): Scope[] {
  if (method === 'POST' && path === '/exports') return ['contacts:read']
  for (const [pattern, scopes] of PROMISED) {
    const match = pattern.exec(path)
    if (match) return [...new Set(scopes(method === 'GET', ...match.slice(1)))]
  }
  return assert.fail(`${method} ${path}: no scope is promised`)
}

/** As documented: write, author and run imply read on the same resource. */
export const covers = (held: Scope, needed: Scope) =>
  held === needed || (needed.endsWith(':read') && held.split(':')[0] === needed.split(':')[0])

/** As documented: the scopes that members lack. Owners and admins have all. */
export const mayNot = (role: MemberRole, scope: Scope) =>
  role === 'member' && ['workflows:author', 'webhooks:write', 'records:reveal'].includes(scope)

/** The table with the rows that a path parameter names. */
export const TABLES: [path: RegExp, parameter: string, table: string][] = [
  ...kindNames.map((kind) => [new RegExp(`/${kind}/\\{`), 'entity_id', kind] as [RegExp, string, string]),
  [/\{entity\}/, 'entity_id', 'contacts'],
  [/./, 'target_id', 'companies'],
  [/./, 'workflow_id', 'workflows'],
  [/./, 'run_id', 'runs'],
  [/./, 'batch_id', 'run_batches'],
  [/./, 'import_id', 'imports'],
  [/./, 'export_id', 'exports'],
  [/./, 'file_id', 'files'],
  [/./, 'view_id', 'views'],
  [/./, 'list_id', 'lists'],
  [/./, 'report_id', 'reports'],
  [/./, 'job_id', 'bulk_jobs'],
  [/./, 'erasure_id', 'erasures'],
  [/\/incoming\//, 'webhook_id', 'incoming_webhooks'],
  [/\/outgoing\//, 'webhook_id', 'outgoing_webhooks'],
  [/./, 'log_id', 'incoming_logs'],
  [/./, 'delivery_id', 'deliveries'],
  [/./, 'collection_id', 'knowledge_collections'],
  [/./, 'document_id', 'knowledge_documents'],
  [/\/incoming\//, 'replay_id', 'incoming_replays'],
  [/\/outgoing\//, 'replay_id', 'outgoing_replays'],
  [/./, 'key_id', 'api_keys'],
  [/./, 'grant_id', 'oauth_grants'],
  [/./, 'session_id', 'sessions'],
  [/./, 'user_id', 'memberships'],
  [/./, 'invitation_id', 'invitations'],
  [/./, 'suppression_id', 'mail_suppressions'],
]
/** Parameters that are names within another resource, each with a value. */
const NAMES: Record<string, string> = {
  entity: 'contacts',
  target: 'companies',
  name: 'tier',
  node_type: 'delay',
  node_id: 'pause',
  pipeline_id: 'default',
  template_id: 'deal-won-onboarding',
  version: '1',
  token: 'none',
}

/** Required query strings by operation. */
export const QUERIES: Record<string, string> = {
  listIterations: '?loop=each',
  uploadFile: '?name=x.csv',
}
const parametersOf = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)

/** A path with values in place of its parameters. */
export const filled = (path: string, values: Record<string, string>) =>
  path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? NAMES[name] ?? assert.fail(`{${name}} of ${path}`))

/** Paths for every kind of record and every pair of kinds; one value for each other parameter. */
export function pathsOf({ path }: Route, ids: Record<string, string>): string[] {
  const names = parametersOf(path)
  if (!names.includes('entity')) return [filled(path, ids)]
  return kindNames.flatMap((kind, i) => {
    const targets = names.includes('target') ? [kind, kindNames[(i + 1) % kindNames.length]!] : ['']
    return targets.map((target) => filled(path, { ...ids, entity: kind, target }))
  })
}

/** The parameters that are ids, in order, each with its table. */
export function tablesOf(path: string): [parameter: string, table: string][] {
  return parametersOf(path).flatMap((name) => {
    if (name in NAMES) return []
    const found = TABLES.find(([pattern, parameter]) => parameter === name && pattern.test(path))
    return [[name, found?.[2] ?? assert.fail(`{${name}} of ${path} has no table here`)]]
  })
}

/** An example body. */
export function bodyOf({ accepts, example }: Route | AppRoute, { headers = {} }: { headers?: object } = {}) {
  // A text where any type is accepted: knowledge refuses types that it cannot read before it looks for the collection.
  const type = accepts === ANY ? 'text/plain' : accepts
  if (type) return { body: 'Email\r\nada@example.com\r\n', headers: { ...headers, 'Content-Type': type } }
  return example === undefined ? {} : { body: example }
}

/** The parameters that are ids. */
export const ID_PARAMETERS = TABLES.map(([, parameter]) => parameter)
