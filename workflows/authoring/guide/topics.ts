import { FILTERS } from '../../language/expressions/filters.ts'
import { NODE_MEMBERS } from '../../language/reference-hints.ts'
import { flowText } from '../../language/repair.ts'
import { shapeOf } from '../../language/shapes.ts'
import type { Catalogue } from '../../nodes/catalogue.ts'
import { EACH_TYPES, nodeTypes, REPEAT_TYPES, WITHOUT_SECRETS } from '../../nodes/index.ts'
import { ACTIONS, EVENTS } from '../../shared/events.ts'
import { EXPRESSION, SPEC } from '../../shared/limits.ts'
import { CONDITION_OPERATORS, FILTER_OPERATORS } from '../../shared/operators.ts'
import { kindObjects } from '../../shared/record-kinds.ts'
import { DEFAULT_MAX_INTERVAL, DEFAULT_RETRY, DEFAULT_TIMEOUT } from '../compile.ts'
import { INPUT_TYPES, rawNode, specNode, specSchema } from '../schema.ts'
import {
  allKinds,
  allMetrics,
  allNodes,
  commonFields,
  commonUpsertKeys,
  fenced,
  type Level,
} from './catalogue.ts'
import { EXPRESSIONS } from './examples.ts'
import { keyLines } from './schemas.ts'

/** A chapter of the guide. */
export interface Topic {
  title: string
  text(catalogue: Catalogue, level: Level): string
}

/** The attempts of node types without `retry`. */
function defaultAttempts(): string {
  const own = Object.values(nodeTypes).filter(({ retry }) => (retry.max_attempts ?? 1) > 1)
  const counts = [...new Set(own.map(({ retry }) => retry.max_attempts!))].sort((a, b) => a - b)
  const named = counts.map((count) => {
    const types = own.filter(({ retry }) => retry.max_attempts === count).map(({ type }) => type)
    return `${count} of ${types.join(', ')}`
  })
  return [`${DEFAULT_RETRY.max_attempts} attempt`, ...named].join(', ')
}

const SPEC_SHAPE = shapeOf(specSchema)

export const TOPICS: Record<string, Topic> = {
  spec: {
    title: 'The spec',
    text: (_, level) =>
      [
        'A workflow is one YAML document, without ```. Its keys:',
        ...keyLines(SPEC_SHAPE, { full: level === 'full' }),
        '',
        '`settings` has:',
        ...keyLines(SPEC_SHAPE.properties?.settings ?? {}, { full: true }),
        '',
        'Each node has:',
        ...keyLines(shapeOf(specNode), { full: true }),
        '',
        `At most ${SPEC.nodes} nodes, ${SPEC.bytes / 1024} KiB and ${SPEC.values} values; no anchors, aliases or tags. Durations: 500ms, 30s, 5m, 2h, 1d.`,
        ...(level === 'full'
          ? [
              '',
              'The raw definition is the same with `nodes` as a list and `edges: [{from, handle, to}]`. Its nodes:',
              ...keyLines(shapeOf(rawNode), { full: false }),
            ]
          : []),
      ].join('\n'),
  },
  flow: {
    title: 'Flow: next, end, branches and joins',
    text: () =>
      [
        '- Without `next`, a node leads by its first handle to the node after it, unless some `next` names that one. `next: <id>` continues a branch, `next: end` ends it.',
        '- By handle: `next: {"true": a, "false": [b, c], error: end}`; b and c run in parallel. Quote `"true"`, `"false"`. Other handles end the branch.',
        '- Cases of a switch are handles: lead each on or to `end`.',
        '- Several at once: `{type: set_fields, config: {fields: {}}, next: [a, b]}`.',
        '- A node reads results of nodes before it. If one is on some paths only, add a default: `{{ nodes.a.output.x | default: "" }}`; in `outputs`, that of a node that did not run is null.',
      ].join('\n'),
  },
  loops: {
    title: 'Loops',
    text: () =>
      `A ${EACH_TYPES} runs its body, the nodes that its handle \`item\` leads to, for each item: \`{{ item.email }}\`, \`{{ index }}\`. The body's last node has no \`next\`; the nodes after the loop follow \`done\` and read \`nodes.<loop>.output.results\`, the rendered \`output\` of each item that completed. A ${REPEAT_TYPES} runs its body (handle \`turn\`) until a condition holds: \`until: "{{ nodes.get.output.body.done }}"\`; \`previous\` is the result of the turn before.`,
  },
  expressions: {
    title: 'Expressions',
    text: (_, level) =>
      [
        `Texts in \`config\`, \`when\` and \`outputs\` can have placeholders, in quotes: \`x: "{{ inputs.a }}"\`. One whole placeholder keeps its type; in a longer text, null is empty, lists and objects are JSON. No tags ({% … %}); \`{inputs.a}\`, \`\${inputs.a}\` are plain text.`,
        '',
        'What can be read:',
        '- `inputs.<name>`: the inputs of the run.',
        '- `trigger.record`, `trigger.changed`, `trigger.previous`, `trigger.data`, `trigger.event`, `trigger.payload`: what started the run, by the type of trigger.',
        `- \`nodes.<id>.${NODE_MEMBERS.join('`, `.')}\`: the result of an earlier node. Fields are within \`output\`: \`nodes.find.output.data[0].id\`.`,
        '- `run.id`, `.workflow_id`, `.workflow_name`, `.started_at`; `org.id`, `.name`, `.currency`, `.timezone`; `env.<name>`: settings of the organization.',
        '- `item`, `index`, `previous`: in loops.',
        `- \`secrets.<name>\`: only in nodes that call other services (effect external, without ${WITHOUT_SECRETS}).`,
        '',
        'An unknown path fails the node, unless a `default` follows directly; a path through null is null. Computing with null gives null, `>` and `<` false: add `| default: 0`. Operators: == != > >= < <= contains, not, and, or, `c ? a : (b | filter)` (filters behind operators need parentheses), `list[(x | minus: 1)]`. Numbers in texts compare by value. Empty values do not hold. In a `url`: `| url_encode`.',
        '',
        '| expression | with | gives |',
        '|---|---|---|',
        ...EXPRESSIONS.map(
          ({ text, scope, result }) =>
            `| \`${text.replaceAll('|', '\\|')}\` | ${flowText(scope.inputs)} | ${JSON.stringify(result)} |`,
        ),
        '',
        `Filters: ${FILTERS.join(', ')}. \`59.7 | to_fixed: 2\` is 59.70; \`a | time_until: b, 'days'\`. Days, times without offset and \`date\` are in \`org.timezone\`.`,
        ...(level === 'full'
          ? [
              `Limits: ${EXPRESSION.template} characters of a text, ${EXPRESSION.placeholders} placeholders of a node.`,
            ]
          : []),
      ].join('\n'),
  },
  triggers: {
    title: 'Triggers',
    text: (_, level) =>
      [
        '- `trigger: manual` (default): people, workflows and the API start it, with `inputs`.',
        '- `trigger: webhook`: an incoming webhook whose `workflow_id` or `listeners` name this one; it writes its record first, with `target_entity: none` none. `trigger` has this `record`, `payload` (the body: JSON, form, or XML without its root; one element is no list: `| compact`), `webhook` ({id, name}), `action` (created, updated or triggered), the allowed `headers` (lower case) and `query`. It checks its sender, and can map values to typed `inputs`.',
        '- `trigger: {type: event, events: [contact.created], when: "{{ trigger.record.email != nil }}"}`: `trigger` has `event`, and `record` (or `data`, if the event has no record: of `workflow.failed` {id, workflow_id, workflow_name, status, error: {code, message}, …}); `changed` has the names of changed fields, `previous` their old values: `when: "{{ trigger.record.lifecycle_stage == \'customer\' and trigger.changed contains \'lifecycle_stage\' }}"`.',
        '- `trigger: {type: schedule, cron: "0 8 * * mon-fri", timezone: Europe/Zurich}`: five fields, by default in UTC; or `every: 15m`. `overlap: skip` starts no run beside an open one.',
        '',
        'Runs of events and schedules have no inputs: give each a default. Triggers fire once active.',
        '',
        level === 'full'
          ? ['Events:', ...EVENTS.map(({ name, title }) => `- \`${name}\`: ${title}`)].join('\n')
          : `Events: ${eventNames()}; any \`<entity>.<action>\` of workflows.`,
      ].join('\n'),
  },
  inputs: {
    title: 'Inputs and outputs',
    text: () =>
      [
        fenced(
          'yaml',
          `name: Inputs
inputs:
  email: {type: string, required: true, description: Who it is about}
  limit: {type: number, default: 10}
  tags: {type: array, default: []}
nodes:
  say: {type: set_fields, config: {fields: {text: "{{ inputs.email }}: {{ inputs.limit }} {{ inputs.tags | join: ', ' }}"}}}
outputs: {text: "{{ nodes.say.output.text }}"}`,
        ),
        `Types: ${INPUT_TYPES.join(', ')}. Unset, an optional input is its default or null. The default has its type. \`{type: string, enum: [new, used]}\` allows these values only.`,
      ].join('\n'),
  },
  errors: {
    title: 'Failures: retry, timeout, on_error',
    text: () =>
      [
        '- A node that fails leaves by its `error` handle; `nodes.<id>.error` has `code`, `message` and, of api_request, `details` {status, body}. Without an edge from it, the run fails and other branches are cancelled.',
        `- \`retry: {max_attempts: 3, initial_interval: ${DEFAULT_RETRY.initial_interval}, backoff: ${DEFAULT_RETRY.backoff}, max_interval: ${DEFAULT_MAX_INTERVAL}}\` and \`timeout: ${DEFAULT_TIMEOUT}\` (of one attempt) are for external nodes; the others run in a transaction.`,
        `- Without them: these intervals and timeout; ${defaultAttempts()}. Only transient errors are retried.`,
        '- Nodes of `undo`, `settings.on_cancel` and `settings.finally` have `type` and `config`, no waits, loops or undo; `run.status` is the outcome. In loops no node has an undo, the loop may.',
        '- An error workflow (`settings.error_workflow` of others) has the trigger manual, and reads `trigger.run` ({id, workflow_name, status, …}), `trigger.error` ({code, message}) and `trigger.node` ({id, title}, or null).',
      ].join('\n'),
  },
  nodes: {
    title: 'Node types',
    text: (_, level) =>
      [
        'Effects: pure, read and write (own data), external (other services). `?` marks optional settings.',
        ...(level === 'brief'
          ? [
              'The settings with their values, `→` the output; `[…]` is a list. Default: effect pure, handles success, error.',
            ]
          : []),
        'Files: `response: file` of an api_request gives `output.file`, for attach_file and `attachments`; the paths of its `paginate` are like `body.data`.',
        '',
        allNodes(level),
      ].join('\n'),
  },
  records: {
    title: 'Records',
    text: (catalogue, level) =>
      [
        `Fields that can be written (* is required). All kinds have ${commonFields(catalogue.entities).join(', ')}: \`custom_fields: {name: value}\`, \`associations: [{object: contacts, id: …}]\`; and to read, id, version, created_at, updated_at. An empty field is null, empty tags are []. An update, also of an upsert, keeps fields that are left out; null clears, \`"{{ x | omit_if_empty }}"\` leaves out. An upsert finds by ${commonUpsertKeys(catalogue.entities).join(' or ')} and overwrites \`fields\`; \`on_create\` and \`on_update\` have more, of one case: with the key alone in \`fields\` it finds or creates. Updates merge custom_fields by name and replace tags; the associations of an upsert are added.`,
        allKinds(catalogue, level === 'full'),
        '',
        `Filters of a search: \`field: value\` or \`"field[operator]": value\`, with ${FILTER_OPERATORS.join(', ')}; lists as \`"stage[in]": [won, lost]\`; fields also \`custom_fields.<name>\`, \`"tags[has_not]"\`, \`associations.deals\` (an id; \`"associations.deals[is_null]": true\`: without any), of contacts, companies and deals \`"last_activity_at[not_since]": last_30_days\`. A search returns the newest 50 (\`limit\`: up to 200), with \`all: true\` up to \`max\`. Operators of conditions: ${CONDITION_OPERATORS.join(', ')}.`,
      ].join('\n'),
  },
  metrics: {
    title: 'Metrics',
    text: (catalogue, level) =>
      `The metrics of \`analytics_query\`, as \`deals.won\`${level === 'brief' ? ' (more: `?topic=metrics`)' : ', with the dimensions of `group_by` and `filter`'}. A day in \`to\` counts whole; by default it is now:\n${allMetrics(catalogue, level)}`,
  },
  validation: {
    title: 'Validation',
    text: () =>
      [
        '`POST /v1/workflows/validate {spec}` reports all errors and warnings, each with code, line, column, path and hint. Apply all, then validate again:',
        '- ``did you mean X?``: replace the name at line and column by X.',
        '- ``write `X` ``: replace the value at the path. ``write `X` instead of `Y` ``: replace Y within that text.',
        '- ``add `key: value` ``: add it to the mapping at the path. `remove it`: remove the key and its value. `one of …`: the allowed values.',
        'Only errors refuse the workflow. `/docs/findings` explains each code.',
      ].join('\n'),
  },
  examples: {
    title: 'Examples',
    text: (_, level) =>
      level === 'full'
        ? 'Whole workflows, each valid and run by a test.'
        : 'More: `examples` of `?topic=examples`.',
  },
}

/** `contact|deal.created|merged (no deal.merged), deal.won`: those of the kinds of records, the others by entity. */
function eventNames(): string {
  const common = Object.keys(ACTIONS)
  const missing = kindObjects
    .flatMap((kind) => common.map((action) => `${kind}.${action}`))
    .filter((name) => !EVENTS.some((event) => event.name === name))
  const except = missing.length > 0 ? ` (no ${missing.join(', ')})` : ''
  const actions = new Map<string, string[]>()
  for (const { name } of EVENTS) {
    const [entity = '', action = ''] = name.split('.')
    if (kindObjects.some((kind) => kind === entity) && common.includes(action)) continue
    actions.set(entity, [...(actions.get(entity) ?? []), action])
  }
  const others = [...actions].map(([entity, names]) => `${entity}.${names.join('|')}`)
  return [`${kindObjects.join('|')}.${common.join('|')}${except}`, ...others].join(', ')
}
