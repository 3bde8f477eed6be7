import type { Route } from '../http/route.ts'

/**
 * The grouping of the operations of /v1 into tools. Operations on resources (records and all that has no rule here)
 * belong to the object-generic tools, under a kind made from their path, so that a new resource needs no line here.
 */

export const TOOL_NAMES = [
  'search_records',
  'get_record',
  'create_record',
  'update_record',
  'delete_record',
  'link_records',
  'describe_records',
  'get_node_types',
  'get_authoring_guide',
  'validate_workflow',
  'create_workflow',
  'list_workflows',
  'run_workflow',
  'get_run',
  'test_node',
  'search_templates',
  'import_template',
  'search_knowledge',
  'add_knowledge',
  'query_analytics',
] as const

export type ToolName = (typeof TOOL_NAMES)[number]

export const isToolName = (name: string): name is ToolName => (TOOL_NAMES as readonly string[]).includes(name)

interface Rule {
  tool: ToolName
  /** Matches `GET /workflows/{workflow_id}`. */
  operations: RegExp
}

/** The first match counts. An operation without one belongs to a generic tool. */
const RULES: readonly Rule[] = [
  { tool: 'link_records', operations: /^\w+ \/objects\/\{entity\}\/\{entity_id\}\/associations\// },
  { tool: 'describe_records', operations: /^GET \/(me|scopes|events|objects|objects\/\w+\/schema)$/ },
  { tool: 'get_node_types', operations: /^GET \/workflows\/nodes/ },
  { tool: 'test_node', operations: /^POST \/workflows\/(.+\/)?test$/ },
  { tool: 'get_authoring_guide', operations: /^GET \/workflows\/authoring-guide/ },
  { tool: 'validate_workflow', operations: /^POST \/workflows\/validate/ },
  { tool: 'search_templates', operations: /^GET \/workflows\/templates/ },
  { tool: 'import_template', operations: /^POST \/workflows\/import$/ },
  { tool: 'get_run', operations: /^GET \/(runs|run-batches)/ },
  { tool: 'run_workflow', operations: /^\w+ \/(runs|run-batches)/ },
  { tool: 'run_workflow', operations: /^POST \/workflows\/(run-by-name|\{workflow_id\}\/(run|backfill))$/ },
  { tool: 'list_workflows', operations: /^GET \/workflows/ },
  { tool: 'create_workflow', operations: /^\w+ \/workflows/ },
  { tool: 'search_knowledge', operations: /^GET \/knowledge/ },
  { tool: 'add_knowledge', operations: /^\w+ \/knowledge/ },
  { tool: 'query_analytics', operations: /^\w+ \/analytics\/(?!reports)/ },
]

/** The tool of an operation; undefined if it belongs to a generic one. */
export const toolByRule = ({ method, path }: Pick<Route, 'method' | 'path'>): ToolName | undefined =>
  RULES.find(({ operations }) => operations.test(`${method} ${path}`))?.tool

/** Why no tool reaches an operation; undefined if one does. */
export function exclusionOf({ response, accepts }: Route): string | undefined {
  if (accepts) return `the body is a file (${accepts}): upload it over HTTP`
  if ('file' in response) return `the response is a file (${response.file}): download it over HTTP`
  if ('stream' in response) return `the response is a stream (${response.stream}): poll with get_run`
  return undefined
}

/**
 * Operations that need a confirmation although /v1 has no preview of them: they delete, change many rows at once, stop
 * what is running, replace a secret, decide for a person, or send data to other services now or from now on.
 */
const CONSEQUENTIAL = [
  /^DELETE /,
  /^POST .*\/(merge|batch|bulk|erase|revert|undo|start|terminate|migrate|backfill|rotate-secret|test|retry|resend|retarget|replays|signal|activate)$/,
  /^POST \/(workflows|runs)\/.*\/(deactivate|cancel|resume)$/,
  /^(POST|PATCH) \/webhooks\/outgoing(\/\{webhook_id\})?$/,
  /^(PUT|POST) \/knowledge\/.*\/(embedding|fetch)$/,
]

/** The test of a whole workflow has no effects. */
const WITHOUT_EFFECTS = /^POST \/workflows\/test$/

export const isConsequential = ({ method, path }: Pick<Route, 'method' | 'path'>): boolean =>
  !WITHOUT_EFFECTS.test(`${method} ${path}`) &&
  CONSEQUENTIAL.some((pattern) => pattern.test(`${method} ${path}`))

/** Operations whose effects leave the service: runs, tests, and requests to the receivers of webhooks. */
const OUTSIDE =
  /^PUT \/knowledge\/.*\/embedding$|^POST (\/knowledge\/.*\/fetch|\/workflows\/.*(run|run-by-name|test|backfill)|\/runs\/.*\/(retry|resume|signal)|\/run-batches|\/deliveries\/.*|\/webhooks\/outgoing\/.*\/(test|replays))$/

export const reachesOutside = ({ method, path }: Pick<Route, 'method' | 'path'>): boolean =>
  !WITHOUT_EFFECTS.test(`${method} ${path}`) && OUTSIDE.test(`${method} ${path}`)
