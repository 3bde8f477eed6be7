import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'
import type { Finding } from '../../../workflows/language/definition.ts'

/**
 * What authors write in the manner of other languages. Without a finding it would run, and quietly do something else
 * than is meant.
 */
const HEAD = `name: Probe
trigger: {type: event, events: [deal.updated]}
inputs:
  n: {type: number, default: 1}
  text: {type: string, default: x}
  list: {type: array, default: [1]}
  flag: {type: boolean, default: true}
  any: {type: any, default: 1}
nodes:
  tasks: {type: crm_manager, config: {operation: search, entity: tasks}}
  contact: {type: crm_manager, config: {operation: get, entity: contacts, id: "{{ trigger.record.contact_id }}"}}
`

function findingsIn(spec: string): Finding[] {
  const { result } = validateSpec(spec, catalogue)
  return [...result.errors, ...result.warnings].filter(({ path }) => !/\/(tasks|contact)$/.test(path))
}

const inText = (
  text: string,
) => `${HEAD}  a: {type: set_fields, config: {fields: {x: ${JSON.stringify(text)}}}}
outputs: {x: "{{ nodes.a.output.x }}"}
`
const ofExpression = (expression: string) => findingsIn(inText(`{{ ${expression} }}`))

/** An expression, the code of its finding, and a part of its hint or message. */
type Row = [expression: string, code: string, text: RegExp]

const TABLES: Record<string, Row[]> = {
  'comparisons that never hold': [
    ["inputs.flag == 'true'", 'impossible_comparison', /write `inputs\.flag == true`/],
    ["contact.do_not_contact == 'yes'", 'impossible_comparison', /a boolean, and never "yes"/],
    ["inputs.n == 'many'", 'impossible_comparison', /a number, and never "many"/],
    ['inputs.n contains 1', 'impossible_comparison', /searches a text or a list/],
    ["trigger.record.tags == 'vip'", 'impossible_comparison', /write `trigger\.record\.tags contains 'vip'`/],
    [
      "trigger.record.tags != 'vip'",
      'impossible_comparison',
      /`not \(trigger\.record\.tags contains 'vip'\)`/,
    ],
    ["trigger.changed == 'stage'", 'impossible_comparison', /write `trigger\.changed contains 'stage'`/],
    ["trigger.event == 'deal.won'", 'impossible_comparison', /a mapping/],
    ["trigger.record.custom_fields contains 'x'", 'impossible_comparison', /a mapping/],
    ["trigger.record.owner_id == 'ann@acme.example'", 'impossible_comparison', /an id/],
    ["trigger.record.currency == 'eur'", 'impossible_comparison', /a currency such as EUR/],
    ["trigger.record.amount == '1,000'", 'impossible_comparison', /a number/],
    ["trigger.record.created_at == 'yesterday'", 'impossible_comparison', /a time/],
    ["tasks.data[0].tags == 'vip'", 'impossible_comparison', /contains 'vip'/],
    ["tasks.data | where: 'tags', 'vip' | size", 'impossible_comparison', /a list/],
    ["tasks.data | where: 'created_at', 'today' | size", 'impossible_comparison', /a time/],
    ["'trigger.record.stage' == 'won'", 'impossible_comparison', /written plainly/],
  ],
  'orders that there are not': [
    ["inputs.n > 'abc'", 'impossible_comparison', /a number is neither/],
    ["trigger.record.amount > '10k'", 'impossible_comparison', /a number is neither/],
    ["trigger.record.amount > '1.000,00'", 'impossible_comparison', /a number is neither/],
    ['inputs.list > 1', 'impossible_comparison', /write `\(inputs\.list \| size\) > 1`/],
    ['inputs.flag > 0', 'impossible_comparison', /a boolean is neither/],
    ["trigger.record.stage > 'lead'", 'impossible_comparison', /a list of names/],
    ["trigger.record.expected_close_date < 'today'", 'impossible_comparison', /run\.started_at/],
    ["trigger.record.created_at > '7 days ago'", 'impossible_comparison', /add_time/],
    ["inputs.any > '30.11.2026'", 'impossible_comparison', /2026-01-31/],
  ],
  'tests that always hold': [
    [
      "trigger.record.stage == 'won' or 'lost' ? 1 : 2",
      'impossible_comparison',
      /the text 'lost' alone always holds/,
    ],
    ["trigger.record.tags contains 'a' and 'b'", 'impossible_comparison', /the text 'b' alone/],
    ['(tasks.data | size) ? 1 : 2', 'impossible_comparison', /write `\(.*\) > 0`/],
    ['not inputs.n', 'impossible_comparison', /a number always holds/],
  ],
  'filters of what they do not take': [
    ['inputs.list | upcase', 'type_mismatch', /takes a text, but gets a list/],
    ["inputs.text | join: ','", 'type_mismatch', /takes a list, but gets a text/],
    ["inputs.text | concat: 'x'", 'type_mismatch', /append/],
    ['trigger.record.expected_close_date | plus: 7', 'type_mismatch', /add_time: 3, "days"/],
    ['contact.email | plus: 1', 'type_mismatch', /takes a number/],
    ["trigger.record.stage | date: '%Y'", 'type_mismatch', /takes a time/],
    ["trigger.record.amount | add_time: 1, 'days'", 'type_mismatch', /takes a time/],
  ],
  'arguments of filters': [
    ["run.started_at | date: 'YYYY-MM-DD'", 'placeholder_syntax', /write `%Y-%m-%d`/],
    ["run.started_at | date: 'dd.MM.yyyy HH:mm'", 'placeholder_syntax', /write `%d\.%m\.%Y %H:%M`/],
    ["run.started_at | date: '%d.%M.%Y'", 'placeholder_syntax', /write `%d\.%m\.%Y`/],
    ["run.started_at | date: '%H:%m'", 'placeholder_syntax', /write `%H:%M`/],
    ["run.started_at | date: '%Q'", 'placeholder_syntax', /%Q/],
    ['inputs.list | first: 2', 'placeholder_syntax', /takes 0 arguments, but gets 1/],
    ['inputs.list | reverse: true', 'placeholder_syntax', /takes 0 arguments/],
    ["inputs.text | upcase: 'x'", 'placeholder_syntax', /takes 0 arguments/],
    ["inputs.list | compact: 'e'", 'placeholder_syntax', /takes 0 arguments/],
    ["inputs.list | sort: 'desc'", 'placeholder_syntax', /\| sort \| reverse/],
    ["inputs.list | where: 'amount > 5'", 'placeholder_syntax', /filters items/],
    ["inputs.text | replace: '[0-9]+', ''", 'placeholder_syntax', /knows no patterns/],
    ["inputs.n | times: 'x'", 'placeholder_syntax', /computes with a number/],
    ['inputs.list[inputs.n | minus: 1]', 'placeholder_syntax', /\[\(inputs\.n \| minus: 1\)\]/],
    ['inputs.list[inputs.n == 2 ? 0 : 1]', 'placeholder_syntax', /in parentheses/],
  ],
  'filters behind an operator, which would apply to all before them,': [
    [
      'inputs.n > 7 ? inputs.n : inputs.n | times: 0.7',
      'placeholder_syntax',
      /`inputs\.n > 7 \? inputs\.n : \(inputs\.n \| times: 0\.7\)` for the last value, or `\(inputs\.n > 7 \? inputs\.n : inputs\.n\) \| times: 0\.7`/,
    ],
    ['inputs.n > 1 | plus: 1', 'placeholder_syntax', /`inputs\.n > \(1 \| plus: 1\)`/],
    [
      "inputs.text == 'WON' | downcase",
      'placeholder_syntax',
      /`\(inputs\.text == 'WON'\) \| downcase` for all/,
    ],
    [
      "inputs.any == nil | default: 'none'",
      'placeholder_syntax',
      /`inputs\.any == \(nil \| default: 'none'\)`/,
    ],
    ['not inputs.list | first', 'placeholder_syntax', /`not \(inputs\.list \| first\)`/],
    ['inputs.flag and inputs.list[0] | size', 'placeholder_syntax', /and \(inputs\.list\[0\] \| size\)`/],
    [
      '(inputs.flag ? inputs.n : 0 | plus: 1) > 5',
      'placeholder_syntax',
      /`inputs\.flag \? inputs\.n : \(0 \| plus: 1\)`/,
    ],
    ["inputs.text | append: (inputs.flag ? 'a' : 'b' | upcase)", 'placeholder_syntax', /\('b' \| upcase\)/],
    [
      'inputs.flag ? inputs.n : nil | plus: 1 | omit_if_empty',
      'placeholder_syntax',
      /`inputs\.flag \? inputs\.n : \(nil \| plus: 1\) \| omit_if_empty`/,
    ],
    [
      'inputs.flag ? inputs.n | times: 0.7 : inputs.n',
      'placeholder_syntax',
      /`inputs\.flag \? \(inputs\.n \| times: 0\.7\) : inputs\.n`/,
    ],
  ],
  'filters of other languages': [
    ["inputs.text | dateformat: '%Y'", 'placeholder_syntax', /write `date` instead/],
    ['inputs.text | toUpperCase', 'placeholder_syntax', /write `upcase` instead/],
    ['inputs.n | number_format: 2', 'placeholder_syntax', /write `format_number: '1,234.00'` instead/],
    ['inputs.text | number', 'placeholder_syntax', /write `plus: 0` instead/],
    ["inputs.text | selectattr: 'x'", 'placeholder_syntax', /write `where` instead/],
    ['inputs.text | zzzzzzzz', 'placeholder_syntax', /\/docs\/expressions/],
  ],
  'null that would be written': [
    ['trigger.record.amount | times: 2', 'computed_from_null', /`trigger\.record\.amount \| default: 0`/],
    [
      'inputs.n | minus: trigger.record.amount',
      'computed_from_null',
      /write `\(trigger\.record\.amount \| default: 0\)` instead of `trigger\.record\.amount`/,
    ],
    ["trigger.record.expected_close_date | add_time: 1, 'days'", 'computed_from_null', /!= null/],
  ],
}

const RIGHT = [
  'inputs.flag == true',
  "trigger.record.tags contains 'vip'",
  "trigger.record.lost_reason == ''",
  'trigger.record.amount > 99.5',
  "trigger.record.amount > '99.50'",
  "trigger.record.expected_close_date > '2026-01-31'",
  "trigger.record.created_at >= '2026-01-31'",
  "trigger.record.created_at == '2026-01-31'",
  'trigger.record.expected_close_date > run.started_at',
  "(run.started_at | date: '%Y-%m-%d') == '2026-11-27'",
  "run.started_at | date: '%G-W%V %F', 'Europe/Zurich'",
  'trigger.record.amount | default: 0 | times: 2',
  'trigger.record.amount | times: 2 | default: 0',
  'trigger.record.amount ? (trigger.record.amount | times: 2) : 0',
  'inputs.list ? 1 : 2',
  "inputs.list | uniq: 'email' | size",
  'inputs.list[(inputs.n | minus: 1)]',
  'inputs.list[inputs.list[0]]',
  "inputs.any > '30 days'",
  "inputs.any == 'x' or inputs.any == 'y'",
  'trigger.record.probability | divided_by: 100',
  '(inputs.n > 7 ? inputs.n : 1) | times: 0.7',
  'inputs.n > 7 ? inputs.n : (inputs.n | times: 0.7)',
  "(inputs.text == 'x') | json",
  'inputs.flag ? inputs.text : nil | omit_if_empty',
  "inputs.any | default: (inputs.flag ? 'a' : 'b')",
]

const DOLLAR = '$'
const CONDITIONS: [setting: string, hint: RegExp][] = [
  ['{{ trigger.record.amount }} > 100', /`"\{\{ trigger\.record\.amount > 100 \}\}"`/],
  ['{{ inputs.flag }} and {{ inputs.any }}', /\{\{ inputs\.flag and inputs\.any \}\}/],
  ['not {{ inputs.flag }}', /\{\{ not inputs\.flag \}\}/],
  [`${DOLLAR}{{ inputs.flag }}`, /`"\{\{ inputs\.flag \}\}"`/],
  ['={{ inputs.flag }}', /`"\{\{ inputs\.flag \}\}"`/],
]

describe('mistakes that would be silent', () => {
  for (const [name, rows] of Object.entries(TABLES))
    it(`${name} are found`, () => {
      for (const [expression, code, text] of rows) {
        const findings = ofExpression(expression.replace(/\b(tasks|contact)\./, 'nodes.$1.output.'))
        ok(findings.length > 0, `${expression}: no finding`)
        equal(findings[0]!.code, code, `${expression}: ${JSON.stringify(findings)}`)
        match(`${findings[0]!.message} | ${findings[0]!.hint}`, text)
      }
    })

  it('are not found where nothing is wrong', () => {
    for (const expression of RIGHT) deepEqual(ofExpression(expression), [], expression)
  })

  it('conditions beside their placeholder are found in every setting', () => {
    const settings: Record<string, (when: string) => string> = {
      'when of a node': (when) => `${HEAD}  a: {type: emit_event, when: ${when}, config: {event: x.y}}\n`,
      'until of a repeat': (when) =>
        `${HEAD}  r: {type: repeat, config: {until: ${when}}, next: {turn: a}}\n  a: {type: emit_event, config: {event: x.y}}\n`,
      'when of a wait': (when) =>
        `${HEAD}  w: {type: wait_for_event, config: {event: deal.won, when: ${when}}}\n`,
      'when of cancel_on': (when) =>
        `${HEAD}  a: {type: emit_event, config: {event: x.y}}\nsettings: {cancel_on: [{event: deal.won, when: ${when}}]}\n`,
      'until of pages': (when) =>
        `${HEAD}  p: {type: api_request, retry: {max_attempts: 2}, config: {url: "https://a.example", paginate: {items: body.data, page: {parameter: p}}, until: ${when}}}\noutputs: {x: "{{ nodes.p.output.items }}"}\n`,
    }
    for (const [setting, spec] of Object.entries(settings))
      for (const [when, hint] of CONDITIONS) {
        const findings = findingsIn(spec(JSON.stringify(when)))
        const found = findings.find((one) => one.hint !== undefined && hint.test(one.hint))
        ok(found, `${setting}: ${when}: ${JSON.stringify(findings)}`)
        equal(validateSpec(spec(JSON.stringify(when)), catalogue).result.valid, false)
      }
    const trigger = (when: string) =>
      `name: T\ntrigger: {type: event, events: [deal.won], when: ${when}}\nnodes: {a: {type: emit_event, config: {event: x.y}}}\n`
    const [first] = findingsIn(trigger(`"{{ trigger.record.stage }} == 'won'"`))
    deepEqual(
      [first?.code, first?.hint],
      ['placeholder_syntax', `write \`"{{ trigger.record.stage == 'won' }}"\``],
    )
    deepEqual(findingsIn(trigger(`" {{ trigger.record.amount > 5 }}\\n"`)), [])
  })

  it('tests of a whole condition are found', () => {
    const node = (when: string) => `${HEAD}  a: {type: emit_event, when: "${when}", config: {event: x.y}}\n`
    const [size] = findingsIn(node('{{ nodes.tasks.output.data | size }}'))
    deepEqual(
      [size?.code, size?.hint],
      [
        'impossible_comparison',
        'write `(nodes.tasks.output.data | size) > 0` instead of `nodes.tasks.output.data | size`',
      ],
    )
    deepEqual(findingsIn(node('{{ nodes.tasks.output.data }}')), [])
  })

  it('signs of other languages before a placeholder are found', () => {
    const found = (text: string) => findingsIn(inText(text)).map(({ code, hint }) => [code, hint])
    deepEqual(found('={{ inputs.text }}'), [['placeholder_syntax', 'write `{{` instead of `={{`']])
    deepEqual(found(`${DOLLAR}{{ inputs.text }}`), [
      ['literal_reference', `write \`{{\` instead of \`${DOLLAR}{{\``],
    ])
    deepEqual(found(`for ${DOLLAR}{{ inputs.n }} each`), [])
  })

  it('conditions of nodes that never hold are found', () => {
    const condition = (conditions: string, type = 'condition', more = '') =>
      findingsIn(
        `${HEAD}  a: {type: ${type}, config: {${more}conditions: [${conditions}]}${type === 'condition' ? ', next: {"true": end, "false": end}' : ''}}\noutputs: {x: "{{ nodes.a.output }}"}\n`,
      ).map(({ code, message, hint }) => `${code} ${message} ${hint}`)
    const rows: [string, RegExp][] = [
      ['{left: "{{ inputs.any }}", operator: in, right: "a, b"}', /invalid_value in takes a list.*\[a, b\]/],
      ['{left: "{{ inputs.n }}", operator: gt, right: abc}', /a number is neither/],
      ['{left: "{{ trigger.record.created_at }}", operator: lt, right: today}', /a time is neither/],
      ['{left: "{{ inputs.any }}", operator: gt, right: "30.11.2026"}', /not as a day/],
      ['{left: "{{ trigger.record.tags }}", operator: eq, right: vip}', /never "vip".*a list/],
      [
        '{left: "{{ inputs.n > 3 }} and {{ inputs.flag }}", operator: eq, right: true}',
        /write `\{\{ inputs\.n > 3 and/,
      ],
    ]
    for (const [one, text] of rows) {
      const found = condition(one)
      ok(found.length > 0, one)
      match(found[0]!, text)
    }
    const items = condition(
      '{field: created_at, operator: gt, right: "30.11.2026"}',
      'filter_items',
      'items: "{{ nodes.tasks.output.data }}", ',
    )
    match(items[0]!, /not as a day/)
    for (const one of [
      '{left: "{{ trigger.record.amount }}", operator: gt, right: "99.50"}',
      '{left: "{{ inputs.flag }}", operator: eq, right: "true"}',
      '{left: "{{ trigger.record.lost_reason }}", operator: eq, right: ""}',
      '{left: "{{ trigger.record.currency }}", operator: eq, right: eur}',
    ])
      deepEqual(condition(one), [], one)
  })

  it('operators in the values of filters are found', () => {
    const hintOf = (filters: string, entity = 'deals') =>
      findingsIn(
        `${HEAD}  a: {type: crm_manager, config: {operation: search, entity: ${entity}, filters: {${filters}}}}\noutputs: {x: "{{ nodes.a.output }}"}\n`,
      ).map(({ hint }) => hint)
    const rows: [string, string][] = [
      ['amount: "> 100"', '"amount[gt]": "100"'],
      ['amount: ">= {{ inputs.n }}"', '"amount[gte]": "{{ inputs.n }}"'],
      ['stage: "!= won"', '"stage[ne]": "won"'],
      ['name: "like %rent%"', '"name[contains]": "rent"'],
      ['name: "%rent%"', '"name[contains]": "rent"'],
      ['name: "rent*"', '"name[starts_with]": "rent"'],
      ['company_id: null', '"company_id[is_null]": true'],
      ['"amount[gte]": "> 5"', '"amount[gt]": "5"'],
    ]
    for (const [filter, better] of rows) deepEqual(hintOf(filter), [`replace it by \`${better}\``], filter)
    for (const filter of [
      'name: "in the park"',
      'name: "not sold"',
      'name: "100%"',
      '"name[contains]": "50%"',
    ])
      deepEqual(hintOf(filter), [], filter)
  })
})
