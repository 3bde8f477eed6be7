import { kindNames } from '../shared/record-kinds.ts'

/**
 * Every code that a finding of validation can have: the source of the types, the severities and the page
 * /docs/findings. An error refuses a workflow, a warning does not. A test validates the examples.
 */
export interface CodeEntry {
  severity: 'error' | 'warning'
  meaning: string
  mend: string
  /**
   * Two specs: one with the finding, and the same one corrected. Absent if the finding depends on the organization or
   * on size.
   */
  example?: { wrong: string; right: string }
}

const spec = (text: string) => `name: Example\n${text}\n`
const both = (wrong: string, right: string) => ({ wrong: spec(wrong), right: spec(right) })
/** Two forms of one node. */
const node = (wrong: string, right: string) => both(`nodes: {a: ${wrong}}`, `nodes: {a: ${right}}`)
const STOP = 'nodes: {a: {type: stop}}'
const CONDITION =
  'a: {type: condition, config: {conditions: [{left: "{{ run.id }}", operator: eq, right: x}]}, next: {"true": b, "false": c}}'

const error = (meaning: string, mend: string, example?: CodeEntry['example']) => ({
  severity: 'error' as const,
  meaning,
  mend,
  ...(example && { example }),
})
const warning = (meaning: string, mend: string, example?: CodeEntry['example']) => ({
  severity: 'warning' as const,
  meaning,
  mend,
  ...(example && { example }),
})

export const CODES = {
  yaml_syntax: error(
    'The text is not YAML. Nothing else is checked until it is.',
    'Correct the line: close brackets and quotes, and indent all keys of a mapping alike.',
    both('nodes: {a: {type: stop}', STOP),
  ),
  yaml_limit: error(
    'The text is too long, too deeply nested, or has too many values.',
    'Split the workflow in two, and call one from the other with run_workflow; pass large data as an input.',
  ),
  yaml_alias: error(
    'Anchors (`&a`) and aliases (`*a`) are not allowed.',
    'Write the value in place of the alias.',
    both(
      'nodes: {a: {type: stop, title: &t Done, config: {message: *t}}}',
      'nodes: {a: {type: stop, title: Done, config: {message: Done}}}',
    ),
  ),
  yaml_tag: error(
    'Tags such as `!!binary` are not allowed.',
    'Write a plain value.',
    node('{type: stop, config: {message: !!binary aGVsbG8=}}', '{type: stop, config: {message: aGVsbG8=}}'),
  ),
  yaml_value: error(
    'A value that JSON does not have, such as infinity.',
    'Write a number, a text, true, false or null.',
    node('{type: stop, config: {outputs: {x: .inf}}}', '{type: stop, config: {outputs: {x: 1e9}}}'),
  ),
  duplicate_key: error(
    'A mapping has the same key twice.',
    'Rename or remove one of the two.',
    both('nodes: {a: {type: stop}, a: {type: stop}}', STOP),
  ),
  code_fence: error('The spec is within a Markdown code fence.', 'Send only the lines between the fences.', {
    wrong: `\`\`\`yaml\n${spec(STOP)}\`\`\`\n`,
    right: spec(STOP),
  }),
  tab_indent: error(
    'YAML is indented with spaces, not with tabs.',
    'Replace each tab by two spaces.',
    both('nodes:\n\ta: {type: stop}', 'nodes:\n  a: {type: stop}'),
  ),
  unquoted_placeholder: error(
    'YAML reads `{{ … }}` without quotes as a mapping.',
    'Put the value into double quotes.',
    node('{type: stop, config: {message: {{ run.id }}}}', '{type: stop, config: {message: "{{ run.id }}"}}'),
  ),
  unquoted_text: error(
    'A text without quotes has characters with a meaning in YAML, such as a colon and a space.',
    'Put the text into double quotes.',
    both(`description: Note: new\n${STOP}`, `description: "Note: new"\n${STOP}`),
  ),
  schema: error(
    'A value has the wrong form: a list where a mapping belongs, a number where a text belongs.',
    'Write the form that the message names.',
    both('nodes: {a: {type: stop, title: 5}}', 'nodes: {a: {type: stop, title: "5"}}'),
  ),
  unknown_key: error(
    'The spec or a node has a key that does not exist.',
    'Write the key that the hint names, or remove it. Settings of a node type belong within `config`.',
    node('{type: stop, if: "{{ run.id }}"}', '{type: stop, when: "{{ run.id }}"}'),
  ),
  missing_key: error('A required key is missing.', 'Add the key.', both('nodes: {a: {config: {}}}', STOP)),
  unknown_node_type: error(
    'There is no node type of this name.',
    'Write the name that the hint proposes, or one of GET /v1/workflows/nodes.',
    node('{type: stopp}', '{type: stop}'),
  ),
  invalid_config: error(
    'A setting in the `config` of a node is missing, unknown or of the wrong form.',
    'Write what the hint shows; the node type has the schema of its config.',
    node('{type: delay, config: {for: 30}}', '{type: delay, config: {for: 30s}}'),
  ),
  invalid_value: error(
    'A value written plainly does not fit the field of a record or a filter.',
    'Write one of the allowed values, in the form that the message names.',
    node(
      '{type: crm_manager, config: {operation: create, entity: contacts, fields: {email: a@b.ch, lead_status: hot}}}',
      '{type: crm_manager, config: {operation: create, entity: contacts, fields: {email: a@b.ch, lead_status: new}}}',
    ),
  ),
  missing_value: error(
    'A field that a record or a node needs, or an input that a started workflow requires, is not given.',
    'Add the field.',
    node(
      '{type: crm_manager, config: {operation: create, entity: deals, fields: {amount: "5"}}}',
      '{type: crm_manager, config: {operation: create, entity: deals, fields: {name: Engine, amount: "5"}}}',
    ),
  ),
  unknown_handle: error(
    '`next` names a handle that the node does not have.',
    'Write one of the handles that the message lists.',
    both(
      'nodes: {a: {type: delay, config: {for: 1s}, next: {succes: b}}, b: {type: stop}}',
      'nodes: {a: {type: delay, config: {for: 1s}, next: {success: b}}, b: {type: stop}}',
    ),
  ),
  missing_target: error(
    '`next` names a node that does not exist.',
    'Write the id of a node, or `end`.',
    both(
      'nodes: {a: {type: delay, config: {for: 1s}, next: sned}, send: {type: stop}}',
      'nodes: {a: {type: delay, config: {for: 1s}, next: send}, send: {type: stop}}',
    ),
  ),
  unreachable_node: error(
    'No path leads from the first node to this one.',
    'Name it in the `next` of another node, or remove it.',
    both('nodes: {a: {type: stop}, b: {type: stop}}', STOP),
  ),
  cycle: error(
    'Nodes lead back to themselves.',
    'To repeat nodes for each item of a list, use for_each; its body needs no edge back.',
    both(
      'nodes: {a: {type: delay, config: {for: 1s}, next: b}, b: {type: delay, config: {for: 1s}, next: a}}',
      'nodes: {a: {type: delay, config: {for: 1s}, next: b}, b: {type: delay, config: {for: 1s}}}',
    ),
  ),
  loop_body: error(
    'The body of a loop is empty, or is entered or left elsewhere than at its start and end.',
    'Lead `item` to the first node of the body, and `done` to what follows the loop. Nodes of the body lead only to each other.',
    both(
      'nodes: {a: {type: for_each, config: {items: [1]}, next: {item: end, done: b}}, b: {type: stop}}',
      'nodes: {a: {type: for_each, config: {items: [1]}, next: {item: c, done: b}}, c: {type: emit_event, config: {event: x.y}}, b: {type: stop}}',
    ),
  ),
  duplicate_node: error(
    'Two nodes of a raw definition have the same id. (In YAML it is `duplicate_key`.)',
    'Rename one of the two, and the edges that lead to it.',
    {
      wrong: '{"name": "Example", "nodes": [{"id": "a", "type": "stop"}, {"id": "a", "type": "stop"}]}',
      right: '{"name": "Example", "nodes": [{"id": "a", "type": "stop"}]}',
    },
  ),
  placeholder_syntax: error(
    'The expression between `{{` and `}}` does not parse, or a filter in it does not exist or has wrong arguments. Or a condition is not one placeholder: then it is a text, which always holds.',
    'Correct the expression; the guide has the filters. Write the whole condition into one `{{ }}`.',
    node(
      '{type: stop, config: {message: "{{ run.id | uppercase }}"}}',
      '{type: stop, config: {message: "{{ run.id | upcase }}"}}',
    ),
  ),
  unknown_root: error(
    'A placeholder begins with an unknown root.',
    'Begin with inputs, trigger, nodes, run, org or env; in a loop also item and index.',
    both(
      'inputs: {mail: {type: string, default: x}}\nnodes: {a: {type: stop, config: {message: "{{ mail }}"}}}',
      'inputs: {mail: {type: string, default: x}}\nnodes: {a: {type: stop, config: {message: "{{ inputs.mail }}"}}}',
    ),
  ),
  root_not_available: error(
    'A placeholder reads a root that is not available here: `item` outside of a loop, `secrets` in a node that sends nothing.',
    'Read it in a node where it is available, and pass the result on.',
    node(
      '{type: stop, config: {message: "{{ item.id }}"}}',
      '{type: stop, config: {message: "{{ run.id }}"}}',
    ),
  ),
  unknown_node: error(
    'A placeholder reads the output of a node that does not exist.',
    'Write the id that the hint names.',
    both(
      'nodes: {find: {type: set_fields, config: {fields: {x: 1}}}, z: {type: stop, config: {outputs: {x: "{{ nodes.fnid.output.x }}"}}}}',
      'nodes: {find: {type: set_fields, config: {fields: {x: 1}}}, z: {type: stop, config: {outputs: {x: "{{ nodes.find.output.x }}"}}}}',
    ),
  ),
  not_upstream: error(
    'A node reads the output of a node that is not upstream of it.',
    'Move the other node before this one.',
    both(
      'nodes: {z: {type: delay, config: {for: "{{ nodes.b.output.x }}"}}, b: {type: set_fields, config: {fields: {x: 1s}}}}',
      'nodes: {b: {type: set_fields, config: {fields: {x: 1s}}}, z: {type: delay, config: {for: "{{ nodes.b.output.x }}"}}}',
    ),
  ),
  unknown_input: error(
    'A placeholder reads an input that `inputs` does not have.',
    'Write the name that the hint proposes, or add the input.',
    both(
      'inputs: {email: {type: string, required: true}}\nnodes: {a: {type: stop, config: {message: "{{ inputs.emial }}"}}}',
      'inputs: {email: {type: string, required: true}}\nnodes: {a: {type: stop, config: {message: "{{ inputs.email }}"}}}',
    ),
  ),
  unknown_field: error(
    'A record, an output or a filter has no field of this name.',
    'Write the name that the hint proposes; fields of your own are within `custom_fields`.',
    node(
      '{type: crm_manager, config: {operation: create, entity: contacts, fields: {emial: a@b.ch}}}',
      '{type: crm_manager, config: {operation: create, entity: contacts, fields: {email: a@b.ch}}}',
    ),
  ),
  unknown_entity: error(
    'There is no kind of record of this name.',
    `Write the plural: ${kindNames.join(', ')}.`,
    node(
      '{type: crm_manager, config: {operation: create, entity: contact, fields: {email: a@b.ch}}}',
      '{type: crm_manager, config: {operation: create, entity: contacts, fields: {email: a@b.ch}}}',
    ),
  ),
  unknown_event: error(
    'There is no event of this name.',
    'Write an event of GET /v1/events, or `<entity>.<action>` for one that a workflow raises.',
    both(
      `trigger: {type: event, events: [contact.craeted]}\n${STOP}`,
      `trigger: {type: event, events: [contact.created]}\n${STOP}`,
    ),
  ),
  type_mismatch: error(
    'A value has another type than the place where it is used.',
    'Write a value of the type that the message names, or convert it with a filter.',
    both(
      `inputs: {n: {type: number, default: "3"}}\n${STOP}`,
      `inputs: {n: {type: number, default: 3}}\n${STOP}`,
    ),
  ),
  impossible_comparison: error(
    'A value is compared with one that it can never have, or with one that is neither greater nor less, or a value is tested that always holds: the result is always the same.',
    'Write a value that it can have, or take from it what can be compared: the size of a list, the day of a time.',
    both(
      'trigger: {type: event, events: [deal.updated], when: "{{ trigger.record.stage == \'wonn\' }}"}\nnodes: {a: {type: stop}}',
      'trigger: {type: event, events: [deal.updated], when: "{{ trigger.record.stage == \'won\' }}"}\nnodes: {a: {type: stop}}',
    ),
  ),
  cron_syntax: error(
    'The schedule is not a cron expression of five fields.',
    'Write minute, hour, day of month, month and day of week: `0 8 * * mon-fri`.',
    both(
      `trigger: {type: schedule, cron: "0 8 * *"}\n${STOP}`,
      `trigger: {type: schedule, cron: "0 8 * * *"}\n${STOP}`,
    ),
  ),
  unknown_timezone: error(
    'There is no time zone of this name.',
    'Write an IANA name, such as Europe/Zurich.',
    both(
      `trigger: {type: schedule, cron: "0 8 * * *", timezone: Bern}\n${STOP}`,
      `trigger: {type: schedule, cron: "0 8 * * *", timezone: Europe/Zurich}\n${STOP}`,
    ),
  ),
  cron_never_fires: error(
    'No day fits the schedule, such as 30 February.',
    'Correct the day or the month.',
    both(
      `trigger: {type: schedule, cron: "0 8 30 2 *"}\n${STOP}`,
      `trigger: {type: schedule, cron: "0 8 28 2 *"}\n${STOP}`,
    ),
  ),
  cron_both_days: warning(
    'A cron expression names days of the month and days of the week: it fires only on days that fit both, where many other crons fire on either.',
    'Write `*` for one of the two. For the first Monday of a month, write a range: `0 8 1-7 * mon`.',
    both(
      `trigger: {type: schedule, cron: "0 8 1 * mon"}\n${STOP}`,
      `trigger: {type: schedule, cron: "0 8 1-7 * mon"}\n${STOP}`,
    ),
  ),
  cron_step: warning(
    'A step of the cron expression is longer than its range, such as `*/90` in the minutes. Steps begin anew with each hour, day, month or year, so it names one value only: minute 0 of each hour.',
    'Write an interval, such as `every: 90m`, in place of `cron`; or the value, if it is meant.',
    both(
      `trigger: {type: schedule, cron: "*/90 * * * *"}\n${STOP}`,
      `trigger: {type: schedule, every: 90m}\n${STOP}`,
    ),
  ),
  conflicting_times: error(
    'Two times contradict each other: `cron` beside `every`, a `jitter` longer than the interval, an `expected_within` that the `timeout` does not allow.',
    'Remove one of the two, or write the shorter duration that the message names.',
    both(
      `trigger: {type: schedule, every: 15m, jitter: 30m}\n${STOP}`,
      `trigger: {type: schedule, every: 15m, jitter: 5m}\n${STOP}`,
    ),
  ),
  input_without_default: error(
    'An event or a schedule starts the workflow and gives no inputs, but an input is required.',
    'Give the input a default instead of `required`.',
    both(
      `trigger: {type: schedule, cron: "0 8 * * *"}\ninputs: {n: {type: number, required: true}}\n${STOP}`,
      `trigger: {type: schedule, cron: "0 8 * * *"}\ninputs: {n: {type: number, default: 1}}\n${STOP}`,
    ),
  ),
  handle_without_decision: error(
    'A node with several handles, such as a condition, an approval or a wait with a `timeout`, has `on_error: continue`, or a `when`: without a decision, the run would take its first handle, such as `true` or `approved`. Only an approval can have a `when`: one that is skipped counts as approved.',
    'Lead on from its `error` handle; place what `when` tests in a condition before it.',
    both(
      `nodes: {c: {type: condition, on_error: continue, config: {conditions: [{left: "{{ run.id }}", operator: eq, right: x}]}, next: {"true": s}}, s: {type: stop, config: {}}}`,
      `nodes: {c: {type: condition, config: {conditions: [{left: "{{ run.id }}", operator: eq, right: x}]}, next: {"true": s, error: s}}, s: {type: stop, config: {}}}`,
    ),
  ),
  search_without_condition: error(
    'Each condition of a search may be left out by `omit_if_empty`: with empty values it would find all records, and the nodes after it would take the first ones for what was sought.',
    'Write the placeholder without `omit_if_empty`: with an empty value the search then finds no record, or fails. A search that is to find all without a value needs a condition that stays, such as `created_at[gte]: 2000-01-01`.',
    both(
      'trigger: {type: webhook}\nnodes: {a: {type: crm_manager, config: {operation: search, entity: contacts, filters: {email: "{{ trigger.payload.email | omit_if_empty }}"}}}}\noutputs: {x: "{{ nodes.a.output.data }}"}',
      'trigger: {type: webhook}\nnodes: {a: {type: crm_manager, config: {operation: search, entity: contacts, filters: {email: "{{ trigger.payload.email }}"}}}}\noutputs: {x: "{{ nodes.a.output.data }}"}',
    ),
  ),
  unknown_pool: error(
    'The organization has no worker pool of this name.',
    'Write the name that the hint proposes, or `default` for the workers without a pool. The operator of the service decides which organizations may use a pool.',
  ),
  timeout_too_long: error(
    'The `timeout` of a node that calls other services is longer than the plan of the organization allows.',
    'Write a shorter timeout: the hint says the longest. A workflow that waits for a slow service can use `wait_for_signal` instead.',
  ),
  maybe_not_upstream: warning(
    'A node, or a longer text of an output, reads the output of a node that does not run on every path. On other paths the value is null, or missing, and the node fails.',
    'Add a default: `{{ nodes.b.output.x | default: "" }}`.',
    both(
      `nodes: {${CONDITION}, b: {type: set_fields, config: {fields: {x: y}}, next: c}, c: {type: stop, config: {message: "{{ nodes.b.output.x }}"}}}`,
      `nodes: {${CONDITION}, b: {type: set_fields, config: {fields: {x: y}}, next: c}, c: {type: stop, config: {message: "{{ nodes.b.output.x | default: '' }}"}}}`,
    ),
  ),
  value_may_not_fit: warning(
    'A setting accepts only some of the values that a placeholder can have.',
    'Convert the others, or choose another field.',
    both(
      'trigger: {type: event, events: [company.created]}\nnodes: {a: {type: crm_manager, config: {operation: create, entity: contacts, fields: {last_name: X, lifecycle_stage: "{{ trigger.record.type }}"}}}}',
      'trigger: {type: event, events: [company.created]}\nnodes: {a: {type: crm_manager, config: {operation: create, entity: contacts, fields: {last_name: X, lifecycle_stage: "{{ trigger.record.lifecycle_stage }}"}}}}',
    ),
  ),
  first_page_only: warning(
    'A node reads the first 50 records or files, because its settings do not say how many, and another one uses the list as if it had all: it loops over it, sums or counts it.',
    'Read every match with `all: true`, or write the `limit` that is meant. Related records and files have a `limit` of at most 200: for more, search with the filter `associations.<kind>` and `all: true`.',
    both(
      'nodes: {a: {type: crm_manager, config: {operation: search, entity: deals, filters: {stage: won}}}, b: {type: aggregate_items, config: {items: "{{ nodes.a.output.data }}", values: {total: {function: sum, field: amount}}}}}\noutputs: {x: "{{ nodes.b.output.values.total }}"}',
      'nodes: {a: {type: crm_manager, config: {operation: search, entity: deals, filters: {stage: won}, all: true}}, b: {type: aggregate_items, config: {items: "{{ nodes.a.output.data }}", values: {total: {function: sum, field: amount}}}}}\noutputs: {x: "{{ nodes.b.output.values.total }}"}',
    ),
  ),
  condition_left_out: warning(
    'A condition of what a node reads may be left out by `omit_if_empty`: with an empty value it reads more, such as all owners in place of one.',
    'Write the placeholder without `omit_if_empty`, unless this is meant.',
    both(
      'trigger: {type: webhook}\nnodes: {a: {type: crm_manager, config: {operation: search, entity: contacts, filters: {lead_status: open, owner_id: "{{ trigger.payload.owner | omit_if_empty }}"}}}}\noutputs: {x: "{{ nodes.a.output.data }}"}',
      'trigger: {type: webhook}\nnodes: {a: {type: crm_manager, config: {operation: search, entity: contacts, filters: {lead_status: open, owner_id: "{{ trigger.payload.owner }}"}}}}\noutputs: {x: "{{ nodes.a.output.data }}"}',
    ),
  ),
  triggers_itself: warning(
    'A node raises the event that starts its workflow, so that each run starts another one, until the chain is cut.',
    'Add a `when` to the trigger that does not hold for what the node writes.',
    both(
      'trigger: {type: event, events: [contact.updated]}\nnodes: {a: {type: crm_manager, config: {operation: update, entity: contacts, id: "{{ trigger.record.id }}", fields: {lifecycle_stage: customer}}}}',
      'trigger: {type: event, events: [contact.updated], when: "{{ trigger.record.lifecycle_stage != \'customer\' }}"}\nnodes: {a: {type: crm_manager, config: {operation: update, entity: contacts, id: "{{ trigger.record.id }}", fields: {lifecycle_stage: customer}}}}',
    ),
  ),
  side_effect_without_retry: warning(
    'A node that calls another service has one attempt only, and its failure is not handled: the run would fail.',
    'Allow more attempts, or add `on_error` or a target for its handle `error`.',
    node(
      '{type: api_request, config: {url: "https://x.test"}, retry: {max_attempts: 1}}',
      '{type: api_request, config: {url: "https://x.test"}, retry: {max_attempts: 3}}',
    ),
  ),
  unused_output: warning(
    'A node only computes a value, and nothing reads it.',
    'Read it, or remove the node.',
    both(
      'nodes: {a: {type: set_fields, config: {fields: {x: 1}}}}',
      'nodes: {a: {type: set_fields, config: {fields: {x: 1}}}}\noutputs: {x: "{{ nodes.a.output.x }}"}',
    ),
  ),
  not_applicable: warning(
    'A setting has no effect at this place, such as `retry` on a node that runs in the transaction of the run.',
    'Remove it.',
    node(
      '{type: emit_event, config: {event: x.y}, retry: {max_attempts: 2}}',
      '{type: emit_event, config: {event: x.y}}',
    ),
  ),
  cleanup_node: error(
    'A node of `undo`, `on_cancel` or `finally` has a type that cannot clean up (it waits, repeats or ends the run), or the undone node is in a loop.',
    'Remove it. Cleanup nodes make calls, change records or start workflows, one after the other.',
    node(
      '{type: emit_event, config: {event: x.y}, undo: {type: delay, config: {for: 1h}}}',
      '{type: emit_event, config: {event: x.y}, undo: {type: emit_event, config: {event: x.undone}}}',
    ),
  ),
  unescaped_html: warning(
    'A value that somebody else has written, such as the name in a form, is put into the HTML of a mail as it is, also by a text of another node: a tag in it would be one of the mail.',
    'Add the filter `escape` where the HTML is written. Values that are HTML on purpose need none where another node makes them.',
    both(
      'trigger: {type: webhook}\nnodes: {a: {type: send_email, config: {to: a@example.com, subject: New, html: "<p>{{ trigger.payload.name }}</p>"}}}',
      'trigger: {type: webhook}\nnodes: {a: {type: send_email, config: {to: a@example.com, subject: New, html: "<p>{{ trigger.payload.name | escape }}</p>"}}}',
    ),
  ),
  unencoded_url: warning(
    'A value that somebody else has written is put into the path or the query of a URL as it is: with `/`, `?`, `&` or `..` in it, the node calls another address of the service, and a `+` is read as a blank.',
    'Add the filter `url_encode`, or give a value of the query in `query`, which encodes it. A URL that is one placeholder is taken as it is.',
    both(
      'inputs: {id: {type: string, required: true}}\nnodes: {a: {type: api_request, config: {url: "https://x.test/orders/{{ inputs.id }}"}, on_error: end}}',
      'inputs: {id: {type: string, required: true}}\nnodes: {a: {type: api_request, config: {url: "https://x.test/orders/{{ inputs.id | url_encode }}"}, on_error: end}}',
    ),
  ),
  json_as_text: warning(
    'The body of a request is JSON written as a text, and a placeholder in it can be any text: a quote or a line break in its value breaks the body, or adds members to it.',
    'Write the body as a mapping, which is sent as JSON. In a text write `{{ … | json }}`, without quotes around it.',
    both(
      `inputs: {name: {type: string, required: true}}\nnodes: {a: {type: api_request, config: {url: "https://x.test/", method: POST, body: '{"name": "{{ inputs.name }}"}'}, on_error: end}}`,
      'inputs: {name: {type: string, required: true}}\nnodes: {a: {type: api_request, config: {url: "https://x.test/", method: POST, body: {name: "{{ inputs.name }}"}}, on_error: end}}',
    ),
  ),
  literal_credential: warning(
    'A text looks like a password, a key or a token. Everybody who may read the workflow can read it.',
    'Keep it as a secret of the organization, write `{{ secrets.<name> }}`, and replace the credential.',
    node(
      '{type: api_request, config: {url: "https://x.test", headers: {Authorization: Bearer hunter2hunter2}}, on_error: end}',
      '{type: api_request, config: {url: "https://x.test", headers: {Authorization: "Bearer {{ secrets.x }}"}}, on_error: end}',
    ),
  ),
  secret_to_any_host: warning(
    'A node sends a secret to a host that a placeholder decides, such as the link of an answer: whoever writes the answer gets the secret.',
    'Write the host in the URL, up to the slash after it. To follow the pages of a service use `paginate`, which calls no other host.',
    both(
      'nodes: {a: {type: api_request, config: {url: "https://x.test/"}, on_error: end}, b: {type: api_request, config: {url: "{{ nodes.a.output.body.next }}", headers: {Authorization: "Bearer {{ secrets.x }}"}}, on_error: end}}',
      'nodes: {a: {type: api_request, config: {url: "https://x.test/"}, on_error: end}, b: {type: api_request, config: {url: "https://x.test/{{ nodes.a.output.body.next }}", headers: {Authorization: "Bearer {{ secrets.x }}"}}, on_error: end}}',
    ),
  ),
  implicit_end: warning(
    'A branch ends at a node without `next`, because the node written after it is named by another `next`; another branch continues.',
    'Write `next: <id>` to continue, or `next: end` to end the branch explicitly.',
    both(
      `nodes: {${CONDITION}, b: {type: emit_event, config: {event: x.y}}, c: {type: emit_event, config: {event: x.y}}, d: {type: stop}}`,
      `nodes: {${CONDITION}, b: {type: emit_event, config: {event: x.y}, next: d}, c: {type: emit_event, config: {event: x.y}, next: d}, d: {type: stop}}`,
    ),
  ),
  loop_takes_the_rest: warning(
    'A loop without `next` takes all nodes after it as its body, and the last of them read nothing of the item: they run once for each item.',
    'Lead on by both handles: `next: {item: <the first node of the body>, done: <the node after the loop>}`. If it is meant, write the `next` of the loop, `next: {item: <the first node>}`.',
    both(
      'inputs: {emails: {type: array, default: []}}\nnodes: {each: {type: for_each, config: {items: "{{ inputs.emails }}"}}, tell: {type: emit_event, config: {event: x.y, data: {to: "{{ item }}"}}}, report: {type: emit_event, config: {event: x.done}}}',
      'inputs: {emails: {type: array, default: []}}\nnodes: {each: {type: for_each, config: {items: "{{ inputs.emails }}"}, next: {item: tell, done: report}}, tell: {type: emit_event, config: {event: x.y, data: {to: "{{ item }}"}}}, report: {type: emit_event, config: {event: x.done}}}',
    ),
  ),
  end_in_loop: warning(
    'A node in the body of a loop ends the whole run as completed: the other items do not run.',
    'To end only the item, write `end` where the node before leads to it: `next: {"true": end}`. To end the run, say so: `status: completed`, or `outputs`, in its config.',
    both(
      `nodes: {each: {type: for_each, config: {items: [1, 2]}, next: {item: a}}, ${CONDITION}, b: {type: stop}, c: {type: emit_event, config: {event: x.y}}}`,
      `nodes: {each: {type: for_each, config: {items: [1, 2]}, next: {item: a}}, ${CONDITION}, b: {type: stop, config: {status: completed}}, c: {type: emit_event, config: {event: x.y}}}`,
    ),
  ),
  constant_until: warning(
    'The condition of a `repeat` reads nothing that changes from turn to turn: its body runs once, or up to `max_turns`.',
    'Read a node of the body, `index` or `previous`.',
    both(
      'nodes: {a: {type: repeat, config: {until: "{{ run.id == 1 }}"}, next: {turn: b}}, b: {type: emit_event, config: {event: x.y}}}',
      'nodes: {a: {type: repeat, config: {until: "{{ index == 9 }}"}, next: {turn: b}}, b: {type: emit_event, config: {event: x.y}}}',
    ),
  ),
  computed_from_null: warning(
    'A filter computes with a value that may be null, such as a field of a record that was never set: the result is null, and a write of it clears the field.',
    'Add a default before the filter, such as 0; or test the value in a condition before.',
    both(
      'trigger: {type: event, events: [deal.won]}\nnodes: {a: {type: stop, config: {outputs: {x: "{{ trigger.record.amount | times: 2 }}"}}}}',
      'trigger: {type: event, events: [deal.won]}\nnodes: {a: {type: stop, config: {outputs: {x: "{{ trigger.record.amount | default: 0 | times: 2 }}"}}}}',
    ),
  ),
  constant_when: warning(
    'A rule of `cancel_on` reads neither the event nor the run: it cancels all open runs, or none. Or a `wait_for_event` says of no record whose event it waits for.',
    'In `cancel_on`, compare the event with the run; give a `wait_for_event` a `record_id`.',
    both(
      'settings: {cancel_on: [{event: contact.deleted}]}\nnodes: {a: {type: stop}}',
      'settings: {cancel_on: [{event: contact.deleted, when: "{{ event.record.id == trigger.record.id }}"}]}\ntrigger: {type: event, events: [contact.created]}\nnodes: {a: {type: stop}}',
    ),
  ),
  event_before_wait: warning(
    'A node raises an event before a `wait_for_event` begins to wait for it: a wait counts later events only.',
    'Write `since: run_start`, which counts the events since the start of the run.',
    both(
      'nodes: {a: {type: emit_event, config: {event: x.y}}, b: {type: wait_for_event, config: {event: x.y}}}',
      'nodes: {a: {type: emit_event, config: {event: x.y}}, b: {type: wait_for_event, config: {event: x.y, since: run_start}}}',
    ),
  ),
  literal_reference: warning(
    'A text looks like a reference, but without `{{ }}` it is plain text.',
    'Put it into `{{ }}`.',
    node(
      '{type: condition, config: {conditions: [{left: run.id, operator: eq, right: x}]}}',
      '{type: condition, config: {conditions: [{left: "{{ run.id }}", operator: eq, right: x}]}}',
    ),
  ),
  unconnected_case: warning(
    'A case leads nowhere: its branch ends there.',
    'Lead it to a node, or to `end`.',
    both(
      'nodes: {a: {type: switch, config: {value: "{{ run.id }}", cases: {won: 1, lost: 2}}, next: {won: b}}, b: {type: stop}}',
      'nodes: {a: {type: switch, config: {value: "{{ run.id }}", cases: {won: 1, lost: 2}}, next: {won: b, lost: end}}, b: {type: stop}}',
    ),
  ),
  input_may_be_missing: warning(
    'A node reads an input that is null if a run does not set it.',
    'Make it required, or give it a default.',
    both(
      'inputs: {x: string}\nnodes: {a: {type: stop, config: {message: "{{ inputs.x }}"}}}',
      'inputs: {x: {type: string, required: true}}\nnodes: {a: {type: stop, config: {message: "{{ inputs.x }}"}}}',
    ),
  ),
  member_may_be_missing: warning(
    'A placeholder reads a member that the `output_schema` of a node names, but does not require: where the answer leaves it out, the reader fails.',
    'Add a default, or add the member to `required`.',
    both(
      'nodes: {a: {type: api_request, config: {url: "https://x.test", output_schema: {type: object, properties: {x: {type: string}, y: {type: string}}, required: [x]}}}, b: {type: stop, config: {message: "{{ nodes.a.output.body.y }}"}}}',
      'nodes: {a: {type: api_request, config: {url: "https://x.test", output_schema: {type: object, properties: {x: {type: string}, y: {type: string}}, required: [x]}}}, b: {type: stop, config: {message: "{{ nodes.a.output.body.y | default: \'none\' }}"}}}',
    ),
  ),
  trigger_without_record: warning(
    'A workflow that is started by hand reads a value that only an event or a webhook provides; or one that only new records start reads what a change has changed.',
    'Say what starts it, or read an input.',
    both(
      'nodes: {a: {type: stop, config: {message: "{{ trigger.record.email }}"}}}',
      'trigger: webhook\nnodes: {a: {type: stop, config: {message: "{{ trigger.record.email }}"}}}',
    ),
  ),
  debounced_change: warning(
    'A node reads `trigger.changed` or `trigger.previous` in a workflow with `settings.debounce`: they are of the last event only, and what earlier events of the same run changed is lost.',
    'Compare the record with what the workflow has stored itself, or leave `debounce` out.',
    both(
      'trigger: {type: event, events: [contact.updated]}\nsettings: {debounce: {key: "{{ trigger.record.id }}", for: 5m}}\nnodes: {a: {type: emit_event, config: {event: x.y, data: {old: "{{ trigger.previous.email }}"}}}}',
      'trigger: {type: event, events: [contact.updated]}\nsettings: {debounce: {key: "{{ trigger.record.id }}", for: 5m}}\nnodes: {a: {type: emit_event, config: {event: x.y, data: {email: "{{ trigger.record.email }}"}}}}',
    ),
  ),
  response_without_webhook: warning(
    'A node answers the sender of an incoming webhook, but something else starts the workflow.',
    'Write `trigger: webhook`, or give the result as `outputs`.',
    both(
      'nodes: {a: {type: respond, config: {text: Done}}}',
      'trigger: webhook\nnodes: {a: {type: respond, config: {text: Done}}}',
    ),
  ),
  second_response: warning(
    'A node answers the sender after another one has, or once for each item of a loop: the first answer counts, and the others fail.',
    'Lead each path to one `respond`, and answer after a loop.',
    both(
      'trigger: webhook\nnodes: {a: {type: respond, config: {text: Done}}, b: {type: respond, config: {text: Again}}}',
      'trigger: webhook\nnodes: {a: {type: respond, config: {text: Done}}}',
    ),
  ),
  unknown_workflow: warning(
    'The organization has no workflow of this name, or several.',
    'Create it, or write the exact name or the id of another workflow.',
  ),
  unraised_event: warning(
    'A trigger, a `wait_for_event` or `cancel_on` names an event that the service does not raise, nor any workflow of the organization by `emit_event`: it never comes.',
    'Correct the name, or create the workflow that raises it. `GET /v1/events` lists the events of the service.',
  ),
  unlike_sample: warning(
    'A placeholder reads what the captured sample of the incoming webhook (`trigger.payload`), or the pinned sample of a node, does not have, or gives a setting a value of a kind that it does not accept. Other values may have it: a sample is no schema.',
    'Correct the path, or add a default: `{{ trigger.payload.x | default: "" }}`.',
  ),
  draft_workflow: warning(
    'The workflow that it starts is a draft, which was never activated: it may be unfinished.',
    'Finish and activate it. A draft that is complete runs as any other workflow.',
  ),
  deprecated_node: warning(
    'The type of the node is deprecated: it still runs, but will be removed.',
    'Use the type that the hint names.',
  ),
  workflow_inputs: warning(
    'A node starts a workflow with inputs that it does not have or that are of another type: the node fails. (Without one that it requires: the error `missing_value`.)',
    'Give the inputs of the named workflow: GET /v1/workflows/{workflow_id} shows them.',
  ),
  workflow_outputs: warning(
    'A placeholder reads an output that the started workflow does not have, or a member that the value of the output does not have: the node that reads it fails, or gets its default.',
    'Write one of the outputs of the named workflow: GET /v1/workflows/{workflow_id} shows them.',
  ),
  unknown_secret: warning(
    'The organization does not have the secret yet: the node fails until it is set.',
    'An owner or admin sets it, in a session: PUT /app/secrets/<name>.',
  ),
  unknown_env: warning(
    'The organization does not have the setting yet: nodes that read it fail until it is set.',
    'An owner or admin sets it, in a session: PATCH /app/organization {"env": {"<name>": …}}.',
  ),
  unknown_custom_field: warning(
    'A workflow names a custom field that the organization has not defined, or has an upsert by one that is not unique, or an imported template needs one of another type.',
    'Define it: POST /v1/custom-fields/<entity>.',
  ),
  reads_mask: warning(
    'A placeholder or a field of items reads a sensitive custom field: a run has its mask, such as `[masked:3k…]`, which is equal to nothing that anybody knows.',
    'Test only whether it has a value, or decide by a field that is not sensitive.',
  ),
  service_not_configured: warning(
    'A node needs a setting of the service, such as its mail server: it fails until the setting is set.',
    'Ask the operator to set the environment variable.',
  ),
} satisfies Record<string, CodeEntry>

export type FindingCode = keyof typeof CODES

export const isWarning = (code: FindingCode) => CODES[code].severity === 'warning'
