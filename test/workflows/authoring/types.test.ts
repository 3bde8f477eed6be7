import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'

const findings = (text: string) => {
  const { errors, warnings } = validateSpec(`name: Test\n${text}`, catalogue).result
  return [...errors, ...warnings]
}

/** Nodes whose outputs are typed, before the node that reads them. */
const SOURCES = `trigger: {type: event, events: [contact.updated], when: "{{ trigger.changed contains 'email' }}"}
inputs: {deals: {type: array, default: []}, any: {type: any, default: 1}}
nodes:
  find: {type: crm_manager, config: {operation: search, entity: deals, limit: 50}}
  related: {type: crm_manager, config: {operation: list_related, entity: contacts, id: "{{ trigger.record.id }}", target: companies}}
  save: {type: crm_manager, config: {operation: upsert, entity: contacts, by: email, fields: {email: ada@example.com}}}
  set: {type: set_fields, config: {fields: {deal: "{{ nodes.find.output.data[0] }}", n: 1, text: "x {{ run.id }}"}}}
  big: {type: filter_items, config: {items: "{{ nodes.find.output.data }}", conditions: [{field: amount, operator: gt, right: 5}]}}
  sorted: {type: sort_items, config: {items: "{{ nodes.big.output.items }}", by: [{field: amount}]}}
  sums: {type: aggregate_items, config: {items: "{{ nodes.find.output.data }}", group_by: [stage], values: {total: {function: sum, field: amount}}}}
  each: {type: for_each, config: {items: "{{ nodes.find.output.data }}", output: {eur: "{{ item.amount }}", name: "{{ item.name }}", x: "{{ nodes.body.output.x }}"}}, next: {item: body, done: stats}}
  body: {type: set_fields, config: {fields: {x: "{{ item.id }}"}}, next: end}
  stats: {type: analytics_query, config: {metric: deals.won_value, group_by: [owner_id]}}
  passages: {type: knowledge_search, config: {q: refunds}}
  ask: {type: ai_prompt, config: {model: m, prompt: p, output_schema: {type: object, properties: {topic: {type: string, enum: [billing, sales]}, score: {type: number}}, required: [topic, score], additionalProperties: false}}, on_error: fail}
  waits: {type: wait_for_event, config: {event: deal.won, when: "{{ event.record.amount > 5 }}"}}
  call: {type: api_request, config: {url: "https://x.test"}, on_error: fail}
  order: {type: api_request, config: {url: "https://x.test", output_schema: {type: object, properties: {lines: {type: array, items: {type: object, properties: {sku: {type: string}}}}, state: {enum: [paid, open]}, more: {type: object}}}}, on_error: fail}
  score: {type: code, config: {code: "return [{points: 1}]", output_schema: {type: array, items: {type: object, properties: {points: {type: number}}}}}, on_error: fail}
`
const reading = (placeholder: string) =>
  findings(`${SOURCES}  read: {type: set_fields, config: {fields: {x: ${JSON.stringify(`{{ ${placeholder} }}`)}}}}
outputs: {x: "{{ nodes.read.output.x }}", all: "{{ nodes.set.output }} {{ nodes.score.output }} {{ nodes.sums.output }} {{ nodes.sorted.output }} {{ nodes.stats.output }} {{ nodes.passages.output }} {{ nodes.related.output }}"}
`)

/** Misspelt paths with the right ones. */
const PATHS: [wrong: string, right: string][] = [
  ['trigger.record.emial', 'trigger.record.email'],
  ['trigger.email', 'trigger.record.email'],
  ['trigger.event.nmae', 'trigger.event.name'],
  ['trigger.previous.emial', 'trigger.previous.email'],
  ['nodes.find.output.data[0].idd', 'nodes.find.output.data[0].id'],
  ['nodes.find.output.data.name', 'nodes.find.output.data[0].name'],
  ['nodes.find.output.id', 'nodes.find.output.data[0].id'],
  ['nodes.find.output.data.first.amout', 'nodes.find.output.data.first.amount'],
  ['nodes.related.output.data[0].association.lable', 'nodes.related.output.data[0].association.label'],
  ['nodes.save.output.id', 'nodes.save.output.record.id'],
  // Not `created_by.id`, which also is an id.
  ['nodes.save.output.record.record.id', 'nodes.save.output.record.id'],
  ['nodes.save.output.record.adress.city', 'nodes.save.output.record.address.city'],
  ['nodes.save.output.record.created_by.tpye', 'nodes.save.output.record.created_by.type'],
  ['nodes.set.output.deal.stgae', 'nodes.set.output.deal.stage'],
  ['nodes.big.output.itms', 'nodes.big.output.items'],
  ['nodes.sorted.output.items[0].amuont', 'nodes.sorted.output.items[0].amount'],
  ['nodes.sums.output.values.totl', 'nodes.sums.output.values.total'],
  ['nodes.sums.output.groups[0].group.stag', 'nodes.sums.output.groups[0].group.stage'],
  ['nodes.each.output.results[0].eurr', 'nodes.each.output.results[0].eur'],
  ['nodes.each.output.items[0].eur', 'nodes.each.output.items[0].output.eur'],
  ['nodes.call.error.details.bodyy', 'nodes.call.error.details.body'],
  ['nodes.each.output.items[0].outptu', 'nodes.each.output.items[0].output'],
  ['nodes.each.output.itms', 'nodes.each.output.items'],
  ['nodes.stats.output.rows[0].vlaue', 'nodes.stats.output.rows[0].value'],
  ['nodes.stats.output.rows[0].group.owner_idd', 'nodes.stats.output.rows[0].group.owner_id'],
  ['nodes.passages.output.passages[0].titel', 'nodes.passages.output.passages[0].title'],
  ['nodes.ask.output.data.topci', 'nodes.ask.output.data.topic'],
  ['nodes.order.output.body.lines[0].skuu', 'nodes.order.output.body.lines[0].sku'],
  ['nodes.order.output.body.line', 'nodes.order.output.body.lines'],
  ["nodes.order.output.body.state == 'payed' ? 1 : 2", "nodes.order.output.body.state == 'paid' ? 1 : 2"],
  ["nodes.score.output.result | sum: 'poinst'", "nodes.score.output.result | sum: 'points'"],
  ['nodes.score.output.result[0].poinst', 'nodes.score.output.result[0].points'],
  ['nodes.waits.output.record.amunt', 'nodes.waits.output.record.amount'],
  ['nodes.call.output.staus', 'nodes.call.output.status'],
  ['nodes.call.error.mesage', 'nodes.call.error.message'],
  ['run.strated_at', 'run.started_at'],
  ['org.currncy', 'org.currency'],
  ['(nodes.find.output.dta | size) > 1', '(nodes.find.output.data | size) > 1'],
  ["nodes.find.output.data | map: 'nmae' | join: ','", "nodes.find.output.data | map: 'name' | join: ','"],
  ["nodes.find.output.data | sum: 'amuont'", "nodes.find.output.data | sum: 'amount'"],
  [
    "nodes.find.output.data | where: 'stag', 'won' | size",
    "nodes.find.output.data | where: 'stage', 'won' | size",
  ],
  [
    "nodes.find.output.data | where: 'stage', 'wonn' | size",
    "nodes.find.output.data | where: 'stage', 'won' | size",
  ],
  ["trigger.record.lead_status == 'unqualifed'", "trigger.record.lead_status == 'unqualified'"],
  ["trigger.changed contains 'lifecycle_stag'", "trigger.changed contains 'lifecycle_stage'"],
  ["nodes.ask.output.data.topic == 'biling' ? 1 : 2", "nodes.ask.output.data.topic == 'billing' ? 1 : 2"],
]

/** The text with its hint applied. */
function mended(text: string, hint: string | undefined): string {
  const [, better, written] = /^write `([\s\S]*)` instead of `([\s\S]*)`$/.exec(hint ?? '') ?? []
  return better === undefined ? `${hint}` : text.replace(written!, () => better)
}

describe('the types of placeholders', () => {
  it('are known for records, loops, events, and the outputs of nodes: a misspelt path is an error', () => {
    for (const [wrong, right] of PATHS) {
      const [found, ...others] = reading(wrong)
      ok(found, `${wrong} has no finding`)
      deepEqual(others, [], wrong)
      match(found.code, /^(unknown_field|impossible_comparison)$/, wrong)
      equal(mended(`{{ ${wrong} }}`, found.hint), `{{ ${right} }}`, found.message)
      deepEqual(reading(right), [], right)
    }
  })

  it('are unknown where anything can be', () => {
    for (const path of [
      'inputs.any.x.y',
      'inputs.deals[0].whatever',
      'nodes.call.output.body.a[0].b',
      'nodes.call.output.headers.x',
      'nodes.order.output.body.more.x',
      'env.limit',
      'trigger.record.custom_fields.tier',
      'nodes.find.output.data[0].custom_fields.tier',
      "inputs.deals | map: 'x'",
      'nodes[inputs.any].output.x',
      'nodes.find.output.data[index].id | default: 1',
    ].filter((path) => !path.includes('index')))
      deepEqual(reading(path), [], path)
  })

  const config = (node: string) =>
    findings(
      `${SOURCES}  read: ${node}\noutputs: {x: "{{ nodes.read.output }} {{ nodes.set.output }} {{ nodes.score.output }} {{ nodes.sums.output }} {{ nodes.sorted.output }} {{ nodes.stats.output }} {{ nodes.passages.output }} {{ nodes.related.output }}"}\n`,
    )

  it('are checked in the settings that name fields of items', () => {
    const items = 'items: "{{ nodes.find.output.data }}"'
    const results = 'items: "{{ nodes.each.output.results }}"'
    const cases: [node: string, hint: string][] = [
      [`{type: sort_items, config: {${items}, by: [{field: amout}]}}`, 'did you mean amount?'],
      [`{type: sort_items, config: {${results}, by: [{field: nmae}]}}`, 'did you mean name?'],
      [
        `{type: filter_items, config: {${items}, conditions: [{field: stge, operator: eq, right: won}]}}`,
        'did you mean stage?',
      ],
      [
        `{type: aggregate_items, config: {${items}, values: {x: {function: sum, field: amonut}}}}`,
        'did you mean amount?',
      ],
      [
        `{type: aggregate_items, config: {${results}, values: {x: {function: sum, field: eru}}}}`,
        'did you mean eur?',
      ],
      [`{type: aggregate_items, config: {${items}, group_by: [lead_sttus]}}`, 'one of '],
      [
        `{type: render_text, config: {${items}, text: "{{ item.nmae }}"}}`,
        'write `item.name` instead of `item.nmae`',
      ],
    ]
    for (const [node, hint] of cases) {
      const [found, ...others] = config(node)
      deepEqual([found?.code, others], ['unknown_field', []], node)
      ok(found!.hint?.startsWith(hint), `${node}: ${found!.hint}`)
    }
  })

  it('are checked where a value of a list is compared or written', () => {
    const stage = 'left: "{{ nodes.set.output.deal.stage }}"'
    const cases: [node: string, code: string, hint: RegExp][] = [
      [
        `{type: condition, config: {conditions: [{${stage}, operator: eq, right: wonn}]}}`,
        'impossible_comparison',
        /did you mean won\?/,
      ],
      [
        `{type: condition, config: {conditions: [{${stage}, operator: in, right: [won, closed]}]}}`,
        'impossible_comparison',
        /one of lead/,
      ],
      [
        `{type: filter_items, config: {items: "{{ nodes.find.output.data }}", conditions: [{field: stage, operator: eq, right: negotation}]}}`,
        'impossible_comparison',
        /did you mean negotiation\?/,
      ],
      [
        `{type: switch, config: {value: "{{ nodes.ask.output.data.topic }}", cases: {a: billing, b: sale}}, next: {a: end, b: end, default: end}}`,
        'impossible_comparison',
        /did you mean sales\?/,
      ],
      [
        `{type: crm_manager, config: {operation: update, entity: contacts, id: "{{ trigger.record.id }}", fields: {lead_status: "{{ nodes.set.output.deal.stage }}"}}}`,
        'type_mismatch',
        /one of new/,
      ],
      [
        `{type: crm_manager, config: {operation: create, entity: contacts, fields: {last_name: X, lifecycle_stage: "{{ nodes.set.output.deal.stage }}"}}}`,
        'value_may_not_fit',
        /convert it/,
      ],
      [
        `{type: crm_manager, config: {operation: create, entity: contacts, fields: {last_name: X, do_not_contact: "{{ nodes.set.output.text }}"}}}`,
        'type_mismatch',
        /^compare it: `\{\{ nodes\.set\.output\.text == … \}\}`$/,
      ],
      [
        `{type: set_fields, config: {fields: {x: "{{ nodes.find.output.data | plus: 1 }}"}}}`,
        'type_mismatch',
        /size/,
      ],
    ]
    for (const [node, code, hint] of cases) {
      const [found, ...others] = config(node)
      deepEqual([found?.code, others], [code, []], node)
      match(String(found!.hint), hint, node)
    }
    deepEqual(config(`{type: condition, config: {conditions: [{${stage}, operator: eq, right: WON}]}}`), [])
  })

  it('follow the event: a trigger has what its events bring', () => {
    const read = (events: string, path: string) =>
      findings(
        `trigger: {type: event, events: [${events}]}\nnodes: {a: {type: stop, config: {message: "x {{ ${path} }}"}}}`,
      )
    for (const [events, path] of [
      ['contact.merged', 'trigger.record.merged_from'],
      ['workflow.failed', 'trigger.data.error.message'],
      ['approval.requested', 'trigger.data.link'],
      ['invoice.paid', 'trigger.data.anything.at.all'],
      ['"contact.created", "deal.won"', 'trigger.record.amount'],
    ] as const)
      deepEqual(read(events, path), [], path)
    for (const [events, path, hint] of [
      ['contact.created', 'trigger.record.amount', undefined],
      ['deal.won', 'trigger.data.amount', 'trigger.record.amount'],
      ['workflow.failed', 'trigger.record.id', undefined],
      ['workflow.failed', 'trigger.data.workflow', 'trigger.data.workflow_id'],
    ] as const) {
      const [found] = read(events, path)
      equal(found?.code, 'unknown_field', path)
      if (hint) match(String(found!.hint), new RegExp(`write .${hint}`), path)
    }
    match(
      String(
        findings(
          'trigger: {type: event, events: [deal.won], when: "{{ trigger.record.amuont > 1 }}"}\nnodes: {a: {type: stop}}',
        )[0]?.hint,
      ),
      /trigger.record.amount/,
    )
  })

  it('end where they recurse', () => {
    const chain = Array.from(
      { length: 300 },
      (_, n) =>
        `  n${n}: {type: set_fields, config: {fields: {x: "{{ nodes.n${n - 1}.output }}", y: "{{ nodes.n${n - 1}.output }}"}}}`,
    )
    chain[0] = '  n0: {type: set_fields, config: {fields: {x: 1}}}'
    deepEqual(findings(`nodes:\n${chain.join('\n')}\noutputs: {x: "{{ nodes.n299.output }}"}`), [])
    const own = findings('nodes: {a: {type: set_fields, config: {fields: {x: "{{ nodes.a.output.x.y }}"}}}}')
    deepEqual(
      own.map(({ code }) => code),
      ['not_upstream'],
    )
  })

  it('are the allowed values of an input', () => {
    const inputs = (season: string) => `inputs: {season: ${season}}
nodes: {a: {type: stop, when: "{{ inputs.season == 'wintre' }}", config: {status: completed}}}
`
    const [found, ...others] = findings(inputs('{type: string, enum: [summer, winter], default: summer}'))
    deepEqual(
      [found?.code, found?.hint, others],
      ['impossible_comparison', 'write `winter` instead of `wintre`', []],
    )
    const codes = (season: string) => findings(inputs(season)).map(({ code, path }) => `${code} ${path}`)
    ok(
      codes('{type: string, enum: [summer, winter], default: spring}').includes(
        'type_mismatch /inputs/season/default',
      ),
    )
    ok(codes('{type: number, enum: [a]}').includes('schema /inputs/season/enum'))
    ok(codes('{type: string, enum: [a, a]}').includes('schema /inputs/season/enum'))
  })
})
