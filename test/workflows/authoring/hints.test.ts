import { deepEqual, ok } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'

/** Mistakes that authors made, and what the hint must say: a wrong one makes a workflow do something else in silence. */

const EVENT = 'trigger: {type: event, events: [deal.updated]}\n'
const LOOP = `inputs: {list: {type: array, required: true}}
nodes:
  each: {type: for_each, config: {items: "{{ inputs.list }}"}, next: {item: body}}
  body: {type: set_fields, config: {fields: {x: "VALUE"}}}
outputs: {n: "{{ nodes.each.output.count }}"}
`
const set = (value: string, head = EVENT) =>
  `${head}nodes:\n  a: {type: set_fields, config: {fields: {x: ${JSON.stringify(value)}}}}\noutputs: {x: "{{ nodes.a.output.x }}"}\n`
const node = (text: string, head = EVENT) => `${head}nodes:\n  a: ${text}\n`
const stop = '{type: stop, config: {status: completed}}'
/** Three branches, of which one runs. */
const THREE = `inputs: {kind: {type: string, required: true}}
nodes:
  s: {type: switch, config: {value: "{{ inputs.kind }}", cases: {one: 1, two: 2}}, next: {one: a, two: b, default: c}}
  a: {type: set_fields, config: {fields: {x: 1}}, next: z}
  b: {type: set_fields, config: {fields: {x: 2}}, next: z}
  c: {type: set_fields, config: {fields: {x: 3}}, next: z}
  z: {type: emit_event, config: {event: x.y, data: {x: "{{ ALTERNATIVES }}", c: "{{ nodes.c.output.x | default: 0 }}"}}}
`
const settings = (text: string, head = EVENT) => node(stop, `${head}settings: ${text}\n`)
const deals = 'items: "{{ nodes.find.output.data }}"'
const found = (text: string) =>
  `nodes:\n  find: {type: crm_manager, config: {operation: search, entity: deals, all: true}}\n  b: ${text}\noutputs: {n: "{{ nodes.b.output }}"}\n`

const CASES: Record<string, [spec: string, hint: RegExp]> = {
  'the value before a change': [
    set('{{ trigger.old.name }}'),
    /^write `trigger\.previous\.name` instead of `trigger\.old\.name`$/,
  ],
  'another word for it': [set('{{ trigger.before.name }}'), /`trigger\.previous\.name` instead/],
  'the number of an item': [
    LOOP.replace('VALUE', '{{ loop.index0 }}'),
    /^write `index` instead of `loop\.index0`$/,
  ],
  'the number of an item that counts from 1': [
    LOOP.replace('VALUE', '{{ forloop.index }}'),
    /`index`, which counts from 0, or `index \| plus: 1`/,
  ],
  'the name of an owner': [set('{{ trigger.record.owner.name }}'), /type: people.*trigger\.record\.owner_id/],
  'the name of a company': [
    set('{{ trigger.record.company.name }}'),
    /crm_manager.*operation: get, entity: companies, id: "\{\{ trigger\.record\.company_id \}\}"/,
  ],
  'the id of a contact': [
    set('{{ trigger.record.contact }}'),
    /^write `trigger\.record\.contact_id` instead of `trigger\.record\.contact`$/,
  ],
  'a field of a mapping that the record lacks': [
    set('{{ trigger.record.supervisor.name }}'),
    /^one of (?!.*instead of)/,
  ],
  'a misspelt field of a related record': [
    node(
      '{type: crm_manager, config: {operation: search, entity: contacts, filters: {"company.industri": Mills}}}',
    ),
    /^did you mean company\.industry\?$/,
  ],
  'a misspelt value of a related record': [
    node(
      '{type: crm_manager, config: {operation: search, entity: contacts, filters: {associations.tasks.priority: urgnt}}}',
    ),
    /^did you mean urgent\?$/,
  ],
  'an interval of a day in a time zone': [
    node(stop, 'trigger: {type: schedule, every: 1d, offset: 390m, timezone: Europe/Berlin}\n'),
    /in Europe\/Berlin, use `cron: "30 6 \* \* \*"` in place of `every` and `offset`/,
  ],
  'outputs of a run that nobody waits for': [
    'nodes: {a: {type: run_workflow, config: {workflow: Other, wait: false}}}\noutputs: {n: "{{ nodes.a.output.outputs.n }}"}\n',
    /^with `wait: false` the outputs are null.*remove `wait`$/,
  ],
  'a text where a number is meant': [
    'inputs: {n: {type: string, default: "2"}}\nnodes: {a: {type: format_date, config: {value: "2026-01-01", add: {days: "{{ inputs.n }}"}}}}\noutputs: {x: "{{ nodes.a.output.date }}"}\n',
    /^write `"\{\{ inputs\.n \| plus: 0 \}\}"`$/,
  ],
  'one brace': [
    node(`{type: stop, when: "{ trigger.record.amount > 5 }", config: {status: completed}}`),
    /^write `"\{\{ trigger\.record\.amount > 5 \}\}"`$/,
  ],
  'one equals sign': [set("{{ trigger.record.stage = 'won' }}"), /write `==`/],
  'a filter in a comparison': [
    set('{{ trigger.record.tags | size > 0 }}'),
    /parentheses.*\(trigger\.record\.tags \| size\) > 0/,
  ],
  'a list in an expression': [
    set("{{ trigger.record.stage in ['won', 'lost'] }}"),
    /no `in`.*write `… == … or … == …`/,
  ],
  'a method of a text': [set('{{ trigger.record.name.toLowerCase() }}'), /`\| downcase`/],
  'another method of a text': [set("{{ trigger.record.name.split('@')[1] }}"), /`\| split: …`/],
  'a text without quotes': [set('{{ trigger.record.stage == won }}'), /write `"won"` instead of `won`|'won'/],
  'a root of n8n': [set('{{ $json.email }}'), /trigger\.payload.*inputs/],
  'a node of n8n': [set("{{ $node['a'].json.x }}"), /nodes\.<id>\.output/],
  'the present time': [set('{{ now }}'), /run\.started_at/],
  'the time zone of a workflow': [settings('{timezone: Europe/Berlin}'), /^(?!.*timeout)/],
  'a limit by another name': [
    settings('{concurrency: {by: "{{ trigger.record.id }}", max: 1}}'),
    /did you mean key\?/,
  ],
  'a rate by another name': [settings('{rate_limit: {limit: 5, per: 1m}}'), /did you mean rate\?/],
  'a debounce as a duration': [settings('{debounce: 4s}'), /^write `\{for: 4s\}`$/],
  'the next node by another name': [
    node(`{type: delay, config: {for: 1d}, then: end}`),
    /did you mean next\?/,
  ],
  'a day as the type of an input': [
    set('{{ inputs.d }}', 'inputs: {d: {type: date, required: true}}\n'),
    /did you mean string\?/,
  ],
  'the opposite of a value': [
    node(
      '{type: crm_manager, config: {operation: update, entity: contacts, id: "{{ trigger.record.id }}", fields: {lead_status: qualified}}}',
      'trigger: {type: event, events: [contact.created]}\n',
    ),
    /^one of /,
  ],
  'a field of an item as a placeholder': [
    found(
      `{type: filter_items, config: {${deals}, conditions: [{field: "{{ item.amount }}", operator: gt, right: 5}]}}`,
    ),
    /^write `amount`$/,
  ],
  'a descending sort': [
    `nodes:\n  find: {type: crm_manager, config: {operation: search, entity: deals, all: true, sort: -name}}\noutputs: {n: "{{ nodes.find.output }}"}\n`,
    /order: desc/,
  ],
  'a list of triggers': [
    node(stop, 'trigger: [{type: webhook}, {type: manual}]\n'),
    /one trigger.*another workflow/,
  ],
  'query parameters': [
    node('{type: api_request, config: {url: "https://x.example.com", queryParameters: {a: 1}}}'),
    /did you mean query\?/,
  ],
  'a path into an answer without its start': [
    node(
      '{type: api_request, config: {url: "https://x.example.com", paginate: {page: {parameter: p}, items: data}}}',
    ),
    /^write `body\.data`$/,
  ],
  'a misspelt time zone': [
    node(stop, 'trigger: {type: schedule, cron: "0 8 * * *", timezone: Europe/Viena}\n'),
    /did you mean Europe\/Vienna\?/,
  ],
  'a custom field among the changed fields': [
    set("{{ trigger.changed contains 'custom_fields.health' }}"),
    /trigger\.previous\.custom_fields\.health != trigger\.record\.custom_fields\.health/,
  ],
  'a mail to the id of a user': [
    node('{type: send_email, config: {to: "{{ trigger.record.owner_id }}", subject: x, text: y}}'),
    /type: people, config: \{operation: get, id: "\{\{ trigger\.record\.owner_id \}\}"\}/,
  ],
  'a list of mails to the id of a contact': [
    node('{type: send_email, config: {to: ["{{ trigger.record.contact_id }}"], subject: x, text: y}}'),
    /operation: get, entity: contacts/,
  ],
  'the time of a schedule': [
    node(stop, 'trigger: {type: schedule, at: "08:30"}\n'),
    /^replace it by `cron: "30 8 \* \* \*"`$/,
  ],
  'the time of a day beside an interval': [
    node(stop, 'trigger: {type: schedule, every: day, at: "9:05"}\n'),
    /`cron: "5 9 \* \* \*"` in place of `every` and `at`/,
  ],
  'the condition of a webhook': [
    node(stop, 'trigger: {type: webhook, when: "{{ trigger.payload.x == 1 }}"}\n'),
    /only an event trigger has a condition: begin with a node `\{type: condition/,
  ],
  'a path into an answer in braces': [
    node(
      '{type: api_request, config: {url: "https://x.example.com", paginate: {page: {parameter: p}, items: "{{ body.data }}"}}}',
    ),
    /has no braces: write `body\.data`/,
  ],
  'what a new record has changed': [
    set("{{ trigger.changed contains 'stage' }}", 'trigger: {type: event, events: [deal.created]}\n'),
    /add the event `deal\.updated`/,
  ],
  'the name of a file with a folder': [
    node('{type: api_request, config: {url: "https://x.example.com", response: file, file_name: a/b.pdf}}'),
    /^write `a_b\.pdf`$/,
  ],
  'an output that nobody reads': [
    node('{type: set_fields, config: {fields: {x: 1}}}'),
    /outputs: \{a: "\{\{ nodes\.a\.output \}\}"\}/,
  ],
  'a condition of a trigger that reads a node': [
    node(stop, 'trigger: {type: event, events: [deal.won], when: "{{ nodes.a.output.x == 1 }}"}\n'),
    /a `condition` as the first node/,
  ],
  'a text as the end of a repeat': [
    'nodes:\n  again: {type: repeat, config: {until: "{{ nodes.b.output.text }}"}, next: {turn: b, done: z}}\n  b: {type: render_text, config: {text: x}}\n  z: {type: stop}\n',
    /^compare it: `\{\{ nodes\.b\.output\.text == … \}\}`$/,
  ],
  'a sum over the results of a loop with their state': [
    LOOP.replace('VALUE', '1').replace('.output.count', ".output.items | sum: 'x'"),
    /^write `output\.x` instead of `x`$/,
  ],
  'the error of a failed run': [
    set('{{ trigger.data.error.mesage }}', 'trigger: {type: event, events: [workflow.failed]}\n'),
    /^write `trigger\.data\.error\.message` instead/,
  ],
  'a member of a value in parentheses': [
    set(
      '{{ (inputs.list | group_by: "a" | first).itemss }}',
      'inputs: {list: {type: array, required: true}}\n',
    ),
    /^write `items` instead of `itemss`$/,
  ],
  constants: [
    set('{{ constants.vat }}', 'inputs: {vat: {type: number, default: 20}}\n'),
    /^write `inputs\.vat` instead/,
  ],
  'the constants of a workflow': [
    node(stop, 'constants: {vat: {type: number, default: 20}}\n'),
    /^did you mean inputs\?$/,
  ],
  'a misspelt member of the event of a wait': [
    settings('{cancel_on: [{event: deal.deleted, when: "{{ event.recrd.id == trigger.record.id }}"}]}'),
    /^write `event\.record\.id` instead of `event\.recrd\.id`$/,
  ],
  'a chain that goes on, although a field is asked for': [
    node(
      `{type: crm_manager, config: {operation: update, entity: deals, id: "{{ trigger.record.id }}", fields: {name: "{{ trigger.record.name }}!"}}}`,
      `trigger: {type: event, events: [deal.updated], when: "{{ trigger.changed contains 'name' }}"}\n`,
    ),
    /^let the `when` of the trigger not hold/,
  ],
  'a chain of created records': [
    node(
      '{type: crm_manager, config: {operation: create, entity: contacts, fields: {last_name: x}}}',
      'trigger: {type: event, events: [contact.created]}\n',
    ),
    /trigger\.record\.<field that it sets> != …/,
  ],
  'the event of a trigger, which is a mapping': [
    set("{{ trigger.event == 'deal.updated' }}"),
    /^write `trigger\.event\.name` instead of `trigger\.event`$/,
  ],
  'a boolean as the name of a field': [
    set('{{ inputs.list | where: true | size }}', 'inputs: {list: {type: array, required: true}}\n'),
    /where takes the name of a field, and not true/,
  ],
  'a path of a cursor without body': [
    node(
      '{type: api_request, config: {url: "https://x.example.com", paginate: {cursor: {path: meta.next, parameter: c}}}}',
    ),
    /^write `body\.meta\.next`$/,
  ],
  'the only node of a body, which nobody reads': [
    LOOP.replace('VALUE', '{{ item }}').replace(' }}"}, next', ' }}", output: "{{ index }}"}, next'),
    /^read it in a later node of the body, or in `output` of each$/,
  ],
  'one of two nodes of a body, which nobody reads': [
    'inputs: {list: {type: array, required: true}}\nnodes:\n  each: {type: for_each, config: {items: "{{ inputs.list }}"}, next: {item: a}}\n  a: {type: set_fields, config: {fields: {x: 1}}}\n  b: {type: emit_event, config: {event: x.y}}\n',
    /^read it in a later node of the body, or in `output` of each; or remove a$/,
  ],
  'a wait for the event that the workflow raises before': [
    'nodes:\n  say: {type: emit_event, config: {event: order.packed}}\n  wait: {type: wait_for_event, config: {event: [order.sent, order.packed], timeout: 1d}, next: {received: end, timeout: end}}\n',
    /^add `since: run_start`$/,
  ],
  'a result on some paths only, with a default that is on some only too': [
    THREE.replace('ALTERNATIVES', 'nodes.a.output.x | default: nodes.b.output.x'),
    /^add a default/,
  ],
  'a comparison where a text is wanted': [
    node('{type: stop, config: {status: completed, message: "{{ trigger.record.amount > 3 }}"}}'),
    /^write `'\{\{ \(trigger\.record\.amount > 3\) \| append: "" \}\}'`$/,
  ],
  'a group by a field with dots': [
    found(`{type: aggregate_items, config: {${deals}, group_by: [custom_fields.region]}}`).replace(
      'nodes.b.output }}',
      'nodes.b.output.groups[0].group.custom_fields.region }}',
    ),
    /^write `nodes\.b\.output\.groups\[0\]\.group\["custom_fields\.region"\]` instead of/,
  ],
}

/** What authors wrote on purpose: no finding. */
const RIGHT: Record<string, string> = {
  'an optional input behind a condition':
    'inputs: {e: string}\nnodes:\n  c: {type: condition, config: {conditions: [{left: "{{ inputs.e }}", operator: is_not_empty}]}, next: {"true": a, "false": end}}\n  a: {type: send_email, config: {to: "{{ inputs.e }}", subject: x, text: y}}\n',
  'a chain that ends, since it writes the same again': node(
    `{type: crm_manager, config: {operation: update, entity: deals, id: "{{ trigger.record.id }}", fields: {name: x}}}`,
    `trigger: {type: event, events: [deal.updated], when: "{{ trigger.changed contains 'name' }}"}\n`,
  ),
  'defaults that are exhaustive together': THREE.replace(
    'ALTERNATIVES',
    'nodes.a.output.x | default: nodes.b.output.x | default: nodes.c.output.x',
  ),
  'a list that is found by a whole email': `inputs: {e: {type: string, required: true}}
nodes:
  find: {type: crm_manager, config: {operation: search, entity: contacts, filters: {email: "{{ inputs.e }}"}}}
  each: {type: for_each, config: {items: "{{ nodes.find.output.data }}"}, next: {item: say}}
  say: {type: emit_event, config: {event: x.y, data: {id: "{{ item.id }}"}}}
`,
  'a wait that counts the event that the workflow raises before':
    'nodes:\n  say: {type: emit_event, config: {event: order.packed}}\n  wait: {type: wait_for_event, config: {event: order.packed, since: run_start}}\n',
  'a wait before the workflow raises the event':
    'nodes:\n  wait: {type: wait_for_event, config: {event: order.packed}}\n  say: {type: emit_event, config: {event: order.packed}}\n',
  'a chain that ends, since it writes another field': node(
    `{type: crm_manager, config: {operation: update, entity: deals, id: "{{ trigger.record.id }}", fields: {name: "{{ trigger.record.stage }}"}}}`,
    `trigger: {type: event, events: [deal.updated], when: "{{ trigger.changed contains 'stage' }}"}\n`,
  ),
}

describe('hints', () => {
  for (const [name, spec] of Object.entries(RIGHT))
    it(`are silent about ${name}`, () => {
      const { errors, warnings } = validateSpec(`name: Test\n${spec}`, catalogue).result
      deepEqual([...errors, ...warnings], [])
    })
  for (const [name, [spec, expected]] of Object.entries(CASES))
    it(`are right about ${name}`, () => {
      const { errors, warnings } = validateSpec(`name: Test\n${spec}`, catalogue).result
      const said = [...errors, ...warnings].map(({ message, hint }) => `${message}\n${hint}`)
      ok(
        [...errors, ...warnings].some(({ message, hint }) => expected.test(hint ?? message)),
        said.join('\n') || 'no finding',
      )
    })
})
