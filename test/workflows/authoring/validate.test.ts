import { deepEqual, equal, match, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import { nodeTypes } from '../../../workflows/nodes/index.ts'
import { stepsOf } from '../../support/steps.ts'

/** A spec with `nodes` indented by two, from line 3 on. */
const spec = (nodes: string, rest = '') => `name: Test\nnodes:\n${nodes}\n${rest}`
const set = (id: string, more = '') => `  ${id}: {type: set_fields, config: {fields: {x: 1}}${more}}`

describe('validation', () => {
  const valid: Record<string, string> = {
    'one node': spec('  a: {type: stop}'),
    'a condition with both ways': spec(
      `  a:
    type: condition
    config: {match: any, conditions: [{left: "{{ inputs.n }}", operator: gt, right: 3}]}
    next: {"true": b, "false": end}
  b: {type: stop}`,
      'inputs: {n: number}',
    ),
    'parallel branches that meet, and are read after':
      spec(`  a: {type: condition, config: {conditions: [{left: 1, operator: eq, right: 1}]}, next: {"true": [b, c]}}
  b: {type: delay, config: {for: 1s}, next: d}
  c: {type: api_request, config: {url: "https://x.test/{{ run.id }}"}, timeout: 5s, retry: {max_attempts: 3, initial_interval: 1s, backoff: 1.5, max_interval: 1m}, next: d}
  d: {type: stop, config: {message: "{{ nodes.b.output.until }} {{ nodes.c.output.status }}"}}`),
    'placeholders where numbers, statuses, durations, lists and objects belong': spec(
      `  a: {type: delay, config: {for: "{{ inputs.wait }}"}}
  b: {type: crm_manager, config: {operation: search, entity: contacts, limit: "{{ inputs.n }}", filters: "{{ inputs.filters }}"}}
  c: {type: api_request, config: {url: "{{ inputs.url }}", method: "{{ inputs.method }}", expected_statuses: "{{ inputs.ok }}", headers: "{{ inputs.headers }}", body: "{{ nodes.b.output.data }}"}, on_error: continue}
  d: {type: condition, config: {conditions: "{{ inputs.conditions }}"}}
  e: {type: crm_manager, config: {operation: "{{ inputs.operation }}", entity: "{{ inputs.entity }}"}}
  f: {type: crm_manager, config: {operation: create, entity: contacts, fields: "{{ inputs.fields }}"}}
  g: {type: emit_event, config: {event: "invoice.{{ inputs.action }}", data: "{{ nodes.f.output }}"}}
  h: {type: stop, config: {status: "{{ inputs.status }}"}}`,
      'inputs: {n: {type: number, default: 5}, action: {type: any, required: true}, conditions: {type: any, required: true}, entity: {type: any, required: true}, fields: {type: any, required: true}, filters: {type: any, required: true}, headers: {type: any, required: true}, method: {type: any, required: true}, ok: {type: any, required: true}, operation: {type: any, required: true}, status: {type: any, required: true}, url: {type: any, required: true}, wait: {type: any, required: true}}',
    ),
    'tags of what JSON has, an error handle that leads to the end':
      spec(`  a: {type: api_request, config: {url: "https://x.test", query: {n: !!str 1}}, next: {success: b, error: end}}
  b: {type: stop}`),
    'a switch, an error handle, and a default for what may be missing':
      spec(`  a: {type: switch, config: {value: "{{ run.workflow_name }}", cases: {won: [won, closed], lost: lost}}, next: {won: b, lost: c, default: end}}
  b: {type: api_request, config: {url: "https://x.test"}, next: {success: d, error: c}}
  c: {type: stop, config: {message: "{{ nodes.b.error.message | default: 'lost' }}"}}
  d: {type: stop, config: {message: "{{ nodes.b.output.body.deep.down[0] }}"}}`),
    'webhook trigger, settings, when, join, outputs, filters': `name: All
description: Everything
trigger: {type: webhook}
settings: {concurrency: 3, timeout: 1d}
nodes:
  a: {type: crm_manager, title: Find, config: {operation: get, entity: contacts, id: "{{ trigger.record.id }}"}}
  b: {type: set_fields, when: "{{ nodes.a.output.email != nil }}", join: any, config: {fields: {when: "{{ nodes.a.output.created_at | date: '%Y' }}"}}}
outputs: {year: "{{ nodes.b.output.when | default: nil }}", list: ["{{ org.name }}"]}
`,
    'records linked, related, upserted': spec(
      `  a: {type: crm_manager, config: {operation: upsert, entity: companies, by: domain, fields: {name: X, domain: x.test}}}
  b: {type: crm_manager, config: {operation: link, entity: contacts, id: "{{ trigger.record.id }}", target: companies, target_id: "{{ nodes.a.output.record.id }}"}}
  c: {type: crm_manager, config: {operation: list_related, entity: companies, id: "{{ nodes.a.output.record.id }}", target: contacts, limit: 5}}
  d: {type: set_fields, config: {fields: {n: "{{ nodes.c.output.data | size }}"}}}`,
      'outputs: {n: "{{ nodes.d.output.n }}"}\ntrigger: webhook',
    ),
    'a type that fits': spec(
      `  a: {type: delay, config: {for: "{{ inputs.wait }}"}}`,
      'inputs: {wait: {type: string, required: true}}',
    ),
    'Markdown, braces and ampersands in a text': spec(`  a:
    type: stop
    config:
      message: |
        * one & two [[[ {{ run.id }}
        {not: yaml}`),
  }
  for (const [name, text] of Object.entries(valid))
    it(`finds no problem in ${name}`, () => {
      const { result, definition } = validateSpec(text, catalogue)
      deepEqual(result, { valid: true, errors: [], warnings: [] })
      ok(compile(definition!))
    })

  const bad: [name: string, text: string, code: string, line: number, column: number, hint?: string][] = [
    ['YAML that does not parse', 'name: Test\nnodes: {a: [', 'yaml_syntax', 2, 13],
    ['two documents', 'name: a\n---\nname: b', 'yaml_syntax', 2, 1],
    ['an alias', 'name: &n Test\ndescription: *n\nnodes: {a: {type: stop}}', 'yaml_alias', 2, 14],
    ['a tag of what JSON lacks', spec(set('a').replace('1', '!!binary aGVsbG8=')), 'yaml_tag', 3, 55],
    ['a mapping that JSON lacks', spec(set('a').replace('1', '!!set {b, c}')), 'yaml_tag', 3, 43],
    ['a number that JSON lacks', spec(set('a').replace('1', '.inf')), 'yaml_value', 3, 46, 'write `".inf"`'],
    [
      'an integer too large to be exact',
      spec(set('a').replace('1', '9007199254740993')),
      'yaml_value',
      3,
      46,
      'write `"9007199254740993"`',
    ],
    ['an escaped NUL', 'name: x\ndescription: "\\0"\nnodes: {a: {type: stop}}', 'yaml_value', 2, 14],
    ['a lone surrogate', 'name: "s\\uD800"\nnodes: {a: {type: stop}}', 'yaml_value', 1, 7],
    ['a NUL in a key', spec(set('a').replace('x:', '"\\0":')), 'yaml_value', 3, 43],
    [
      'a key that reaches for a prototype',
      spec(`${set('a')}\n  __proto__: {type: stop}`),
      'yaml_value',
      4,
      3,
    ],
    ['nesting without end', `name: ${'['.repeat(2000)}`, 'yaml_limit', 1, 1],
    ['a key written twice', spec('  a: {type: stop}\n  a: {type: stop}'), 'duplicate_key', 4, 3],
    ['no name', 'nodes: {a: {type: stop}}', 'missing_key', 1, 1],
    ['an unknown key', spec('  a: {type: stop, nxt: b}'), 'unknown_key', 3, 19, 'did you mean next?'],
    ['an id that is none', spec('  Bad-Id: {type: stop}'), 'schema', 3, 3],
    ['a duration that is none', spec(`${set('a', ', timeout: 5 minutes')}`), 'schema', 3, 60],
    ['retries below one', spec(set('a', ', retry: {max_attempts: 0}')), 'schema', 3, 73],
    [
      'a maximum below the initial interval',
      spec(set('a', ', retry: {initial_interval: 2m, max_interval: 1m}')),
      'schema',
      3,
      95,
    ],
    [
      'an unknown node type',
      spec('  a: {type: crm_manger}'),
      'unknown_node_type',
      3,
      13,
      'did you mean crm_manager?',
    ],
    [
      'a setting that the node does not have',
      spec('  a:\n    type: delay\n    config:\n      for: 1s\n      fro: 2s'),
      'invalid_config',
      7,
      7,
    ],
    [
      'a setting of the wrong type',
      spec('  a:\n    type: delay\n    config: {for: soon}'),
      'invalid_config',
      5,
      19,
    ],
    ['a missing setting', spec('  a: {type: delay}'), 'invalid_config', 3, 3],
    [
      'an unknown operation',
      spec('  a: {type: crm_manager, config: {operation: fetch, entity: contacts}}'),
      'invalid_config',
      3,
      46,
    ],
    [
      'an unknown handle',
      spec(`  a: {type: delay, config: {for: 1s}, next: {succes: b}}\n${'  b: {type: stop}'}`),
      'unknown_handle',
      3,
      46,
      'did you mean success?',
    ],
    [
      'an unknown handle that leads to the end',
      spec('  a: {type: delay, config: {for: 1s}, next: {success: b, eror: end}}\n  b: {type: stop}'),
      'unknown_handle',
      3,
      58,
      'did you mean error?',
    ],
    ['something after stop', spec('  a: {type: stop, next: b}\n  b: {type: stop}'), 'unknown_handle', 3, 19],
    [
      'a missing target',
      spec('  a: {type: delay, config: {for: 1s}, next: [send]}\n  sent: {type: stop}'),
      'missing_target',
      3,
      46,
      'did you mean sent?',
    ],
    ['an unreachable node', spec('  a: {type: stop}\n  b: {type: stop}'), 'unreachable_node', 4, 3],
    [
      'a circle',
      spec('  a: {type: delay, config: {for: 1s}, next: b}\n  b: {type: delay, config: {for: 1s}, next: a}'),
      'cycle',
      3,
      3,
    ],
    [
      'a placeholder that is not closed',
      spec('  a: {type: stop, config: {message: "{{ run.id"}}'),
      'placeholder_syntax',
      3,
      37,
    ],
    [
      'an unknown filter',
      spec('  a: {type: stop, config: {message: "{{ run.id | shout }}"}}'),
      'placeholder_syntax',
      3,
      37,
    ],
    ['a tag', spec('  a: {type: stop, config: {message: "{% if run %}"}}'), 'placeholder_syntax', 3, 37],
    [
      'an unknown root',
      spec('  a: {type: stop, config: {message: "{{ input.x }}"}}'),
      'unknown_root',
      3,
      37,
      'write `inputs.x` instead of `input.x`',
    ],
    ['secrets', spec('  a: {type: stop, config: {message: "{{ secrets.x }}"}}'), 'root_not_available', 3, 37],
    [
      'a node that does not exist',
      spec('  a: {type: stop, config: {message: "{{ nodes.b.output }}"}}'),
      'unknown_node',
      3,
      37,
    ],
    [
      'a node that comes later',
      spec(`  a: {type: delay, config: {for: "{{ nodes.b.output.x }}"}}\n${set('b')}`),
      'not_upstream',
      3,
      34,
    ],
    [
      'itself',
      spec('  a: {type: stop, config: {message: "{{ nodes.a.output.status }}"}}'),
      'not_upstream',
      3,
      37,
    ],
    [
      'an input that does not exist',
      spec('  a: {type: stop, config: {message: "{{ inputs.emial }}"}}', 'inputs: {email: string}'),
      'unknown_input',
      3,
      37,
      'write `inputs.email` instead of `inputs.emial`',
    ],
    [
      'a field that the output lacks',
      spec(`${set('a')}\n  b: {type: stop, config: {message: "{{ nodes.a.output.y }}"}}`),
      'unknown_field',
      4,
      37,
    ],
    [
      'output left out',
      spec(`${set('a')}\n  b: {type: stop, config: {message: "{{ nodes.a.x }}"}}`),
      'unknown_field',
      4,
      37,
      'write `nodes.a.output.x` instead of `nodes.a.x`',
    ],
    [
      'an unknown kind of record',
      spec('  a: {type: crm_manager, config: {operation: get, entity: contact, id: "{{ run.id }}"}}'),
      'unknown_entity',
      3,
      59,
      'did you mean contacts?',
    ],
    [
      'a field that the kind lacks',
      spec('  a: {type: crm_manager, config: {operation: create, entity: contacts, fields: {emial: x}}}'),
      'unknown_field',
      3,
      81,
      'did you mean email?',
    ],
    [
      'a type that cannot fit',
      spec('  a: {type: delay, config: {for: "{{ inputs.n }}"}}', 'inputs: {n: number}'),
      'type_mismatch',
      3,
      34,
    ],
    [
      'a trigger of a type that there is not',
      `${spec('  a: {type: stop}')}trigger: {type: foo}`,
      'schema',
      4,
      17,
    ],
    ['an input of a type that there is not', spec(set('a'), 'inputs: {n: {type: foo}}'), 'schema', 4, 20],
    [
      'an event of the service',
      spec('  a: {type: emit_event, config: {event: contact.created}}'),
      'invalid_config',
      3,
      41,
    ],
    [
      'an event that is misspelt',
      `${spec('  a: {type: stop}')}trigger: {type: event, events: [deal.won, contact.craeted]}`,
      'unknown_event',
      4,
      43,
      'did you mean contact.created?',
    ],
    [
      'a wait for an event that is misspelt',
      spec('  a: {type: wait_for_event, config: {event: [invoice.paid, contact.craeted]}}'),
      'unknown_event',
      3,
      60,
      'did you mean contact.created?',
    ],
    [
      'a filter of a wait that reads no member of an event',
      spec('  a: {type: wait_for_event, config: {event: deal.won, when: "{{ event.amount }}"}}'),
      'unknown_field',
      3,
      61,
      'write `event.record.amount` instead of `event.amount`',
    ],
    [
      'a filter of a wait that reads an unknown input',
      spec('  a: {type: wait_for_event, config: {event: deal.won, when: "{{ inputs.x }}"}}'),
      'unknown_input',
      3,
      61,
    ],
    [
      'a filter of a wait without a placeholder',
      spec('  a: {type: wait_for_event, config: {event: deal.won, when: big}}'),
      'placeholder_syntax',
      3,
      61,
    ],
    [
      'an event outside of the filter of a wait',
      spec('  a: {type: wait_for_event, config: {event: deal.won, record_id: "{{ event.record.id }}"}}'),
      'unknown_root',
      3,
      66,
    ],
    [
      'a timeout that is no duration',
      spec('  a: {type: wait_for_signal, config: {name: a, timeout: soon}}'),
      'invalid_config',
      3,
      57,
    ],
    [
      'a handle for a timeout that is not set',
      spec('  a: {type: wait_for_signal, config: {name: a}, next: {timeout: end}}'),
      'unknown_handle',
      3,
      56,
    ],
    [
      'a reminder that is not before the timeout',
      spec('  a: {type: approval, config: {title: a, timeout: 1d, reminders: [1h, 2d]}}'),
      'invalid_config',
      3,
      71,
    ],
    [
      'a `when` that reads nodes',
      `${spec('  a: {type: stop}')}trigger: {type: event, events: [deal.won], when: "{{ nodes.a.output }}"}`,
      'unknown_root',
      4,
      50,
    ],
    [
      'a `when` that reads a field of the record from the trigger',
      `${spec('  a: {type: stop}')}trigger: {type: event, events: [deal.won], when: "{{ trigger.amount }}"}`,
      'unknown_field',
      4,
      50,
      'write `trigger.record.amount` instead of `trigger.amount`',
    ],
    [
      'a `when` that does not parse',
      `${spec('  a: {type: stop}')}trigger: {type: event, events: [deal.won], when: "{{ trigger.record. }"}`,
      'placeholder_syntax',
      4,
      50,
    ],
    [
      'a `when` without a placeholder',
      `${spec('  a: {type: stop}')}trigger: {type: event, events: [deal.won], when: trigger.record.amount}`,
      'placeholder_syntax',
      4,
      50,
    ],
    [
      'an input that a trigger cannot give',
      `${spec(set('a'), 'inputs: {n: {required: true}}')}\ntrigger: {type: event, events: [deal.won]}`,
      'input_without_default',
      4,
      10,
    ],
    [
      'a schedule that never fires',
      `${spec('  a: {type: stop}')}trigger: {type: schedule, cron: "0 8 30 2 *"}`,
      'cron_never_fires',
      4,
      33,
    ],
    [
      'an error in the outputs',
      spec('  a: {type: stop}', 'outputs: {x: "{{ nodes.z.output }}"}'),
      'unknown_node',
      4,
      14,
    ],
  ]
  for (const [name, text, code, line, column, hint] of bad)
    it(`points at ${name}`, () => {
      const { result, definition } = validateSpec(text, catalogue)
      equal(result.valid, false)
      equal(definition, undefined)
      const found = result.errors.find((error) => error.code === code)
      ok(found, JSON.stringify(result.errors))
      deepEqual([found.line, found.column], [line, column])
      if (hint) equal(found.hint, hint)
    })

  const warned: [name: string, text: string, code: string][] = [
    [
      'a result that is there on some paths only',
      spec(
        `  a: {type: condition, config: {conditions: [{left: 1, operator: eq, right: 1}]}, next: {"true": b, "false": c}}\n${set('b', ', next: c')}\n  c: {type: stop, config: {message: "x {{ nodes.b.output.x }}"}}`,
      ),
      'maybe_not_upstream',
    ],
    [
      'a request without retry or error path',
      spec('  a: {type: api_request, config: {url: "https://x.test"}, retry: {max_attempts: 1}}'),
      'side_effect_without_retry',
    ],
    [
      'a time limit inside the transaction',
      spec('  a: {type: condition, config: {conditions: [{left: 1, operator: eq, right: 1}]}, timeout: 5s}'),
      'not_applicable',
    ],
    [
      'retries inside the transaction',
      spec(
        '  a: {type: crm_manager, config: {operation: delete, entity: contacts, id: "{{ run.id }}"}, retry: {max_attempts: 2}}',
      ),
      'not_applicable',
    ],
    [
      'a literal credential in a header',
      spec(
        '  a: {type: api_request, config: {url: "https://x.test", headers: {Authorization: Bearer hunter2}}, on_error: fail}',
      ),
      'literal_credential',
    ],
    [
      'a known key in any node',
      spec(`  a: {type: stop, config: {message: "glp${'at'}-aB3dE5gH7jK9mN1pQ2sT4v"}}`),
      'literal_credential',
    ],
    ['an output that nobody reads', spec(set('a')), 'unused_output'],
  ]
  for (const [name, text, code] of warned)
    it(`warns of ${name}, which is valid`, () => {
      const { result } = validateSpec(text, catalogue)
      deepEqual([result.valid, result.errors], [true, []])
      deepEqual(
        result.warnings.map((found) => found.code),
        [code],
      )
    })

  it('warns of nodes of a deprecated type, and says what to use instead', () => {
    const { slack_message: type } = nodeTypes
    type!.deprecated = 'use api_request'
    try {
      const { result } = validateSpec('name: Old\nnodes:\n  a: {type: slack_message}\n', catalogue)
      deepEqual(
        result.warnings
          .map(({ code, line, column, hint }) => [code, line, column, hint])
          .filter(([code]) => code === 'deprecated_node'),
        [['deprecated_node', 3, 13, 'use api_request']],
      )
    } finally {
      delete type!.deprecated
    }
  })

  it('names a literal credential by its path and what to do, but does not repeat it', () => {
    const call =
      'url: "https://x.test", headers: {X-Api-Key: "{{ run.id }}"}, body: {login: [{password: hunter2}]}'
    const text = spec(`  a: {type: api_request, config: {method: POST, ${call}}, on_error: fail}`)
    const { warnings } = validateSpec(text, catalogue).result
    deepEqual(
      warnings.map(({ code, path, message }) => ({ code, path, message })),
      [
        {
          code: 'literal_credential',
          path: '/nodes/a/config/body/login/0/password',
          message:
            'a.body.login.0.password looks like a credential (a value of password): every key with workflows:read can read it',
        },
      ],
    )
    ok(warnings[0]?.hint?.includes('{{ secrets.<name> }}'))
    equal(JSON.stringify(warnings).includes('hunter2'), false)
  })

  it('lets only the config of nodes that call other services read secrets, by name', () => {
    const call = (config: string, more = '') =>
      validateSpec(
        spec(`  a: {type: api_request, config: {${config}}, on_error: fail${more}}`, '  b: {type: stop}'),
        catalogue,
      )
    const url = 'url: "https://x.test"'
    const named = call(
      `${url}, headers: {A: "Bearer {{ secrets.acme_token }}", B: "{{ env.b | default: 1 }}"}`,
    )
    deepEqual(named.result.errors, [])
    deepEqual(
      named.references.env.map(({ root, name, path, node_id }) => ({ root, name, path, node_id })),
      [{ root: 'secrets', name: 'acme_token', path: '/nodes/a/config/headers/A', node_id: 'a' }],
    )
    for (const computed of ['secrets[inputs.x]', 'secrets', 'secrets | json']) {
      const { errors } = call(`${url}, headers: {A: "{{ ${computed} }}"}`).result
      ok(
        errors.some(
          ({ code, message }) => code === 'root_not_available' && message.includes('secrets.<name>'),
        ),
        computed,
      )
    }
    const elsewhere = [
      call(url, ', when: "{{ secrets.x }}"'),
      validateSpec(
        `${spec('  a: {type: set_fields, config: {fields: {x: "{{ inputs.y | append: secrets.x }}"}}}')}\ninputs: {y: {}}`,
        catalogue,
      ),
      validateSpec(`${spec('  a: {type: stop}')}\noutputs: {x: "{{ secrets.x }}"}`, catalogue),
    ]
    for (const { result } of elsewhere) {
      const [error] = result.errors.filter(({ code }) => code === 'root_not_available')
      ok(error?.message.includes('calls other services'), JSON.stringify(result.errors))
      ok(error?.line)
    }
    const trigger =
      'trigger: {type: event, events: [deal.won], when: "{{ secrets.x == trigger.record.name }}"}'
    const { errors } = validateSpec(`${spec('  a: {type: stop}')}\n${trigger}`, catalogue).result
    deepEqual(
      errors.map(({ code }) => code),
      ['unknown_root'],
    )
  })

  it('does not take the field of a record for a credential by its name', () => {
    const fields = '{first_name: Ada, custom_fields: {key: part-2041-b}}'
    const text = spec(
      `  a: {type: crm_manager, config: {operation: create, entity: contacts, fields: ${fields}}}`,
    )
    deepEqual(validateSpec(text, catalogue).result.warnings, [])
  })

  it('replaces unclear messages of the parsers', () => {
    const messages = (text: string) =>
      validateSpec(text, catalogue).result.errors.map(({ message }) => message)
    deepEqual(messages(`${spec('  a: {type: stop}')}trigger: {type: foo}`), [
      'trigger.type must be one of manual, webhook, event, schedule',
    ])
    deepEqual(messages(`${spec('  a: {type: stop}')}trigger: {cron: x}`), ['trigger.type is missing'])
    deepEqual(messages(`${spec('  a: {type: stop}')}---\nname: b`), [
      'a spec holds one workflow: remove --- and the text after it',
    ])
  })

  it('checks the cron and the time zone of a schedule, and reports all problems', () => {
    const wrong = (cron: string, timezone = 'UTC') =>
      validateSpec(
        `${spec('  a: {type: stop}')}trigger: {type: schedule, cron: "${cron}", timezone: "${timezone}"}`,
        catalogue,
      ).result.errors.map(({ code, path, message }) => [code, path, message.slice(0, 27)])
    deepEqual(wrong('0 8 * * mon-Fri', 'Europe/Zurich'), [])
    deepEqual(wrong('* * * *'), [['cron_syntax', '/trigger/cron', 'cron must have five fields:']])
    deepEqual(wrong('99 * * * 8', 'Mars/X'), [
      ['cron_syntax', '/trigger/cron', 'cron has an invalid minute,'],
      ['cron_syntax', '/trigger/cron', 'cron has an invalid day of '],
      ['unknown_timezone', '/trigger/timezone', 'Mars/X is not a time zone: '],
    ])
  })

  it('suggests a name only within the edit-distance limit', () => {
    const hint = (written: string) =>
      validateSpec(
        spec(`${set('a', `, next: ${written}`)}\n${set('find')}\n${set('send_mail')}`),
        catalogue,
      ).result.errors.find(({ code }) => code === 'missing_target')?.hint
    for (const far of ['b', 'zz', 'fold', 'mail']) equal(hint(far), undefined, far)
    for (const slip of ['fnd', 'fidn', 'Find']) equal(hint(slip), 'did you mean find?', slip)
    equal(hint('sned_mial'), 'did you mean send_mail?')
  })

  it('does not propose a list of one text that fits no better there', () => {
    const hint = (to: string) =>
      validateSpec(
        spec(`  a: {type: send_email, config: {to: "${to}", subject: x, text: y}}`),
        catalogue,
      ).result.errors.map((found) => found.hint)
    deepEqual(hint('nobody'), [undefined])
    deepEqual(hint('a@example.com; b@example.com'), ['write `[a@example.com, b@example.com]`'])
  })

  it('says which setting is missing where a text reads an item of no list', () => {
    const found = (config: string) =>
      validateSpec(
        spec(
          `  a: {type: render_text, config: ${config}}\n  b: {type: stop, config: {outputs: {a: "{{ nodes.a.output.text }}"}}}`,
        ),
        catalogue,
      ).result.errors.map(({ code, hint }) => `${code}: ${hint}`)
    match(
      found('{text: "- {{ item.name }}"}').join(),
      /^root_not_available: add `items`, the list .* a renders/,
    )
    deepEqual(found('{text: "- {{ item.name }}", items: [{name: x}]}'), [])
  })

  it('says in plain words what a value must be', () => {
    const found = (config: string, type = 'sort_items') =>
      validateSpec(
        spec(
          `  a: {type: ${type}, config: ${config}}\n  b: {type: stop, config: {outputs: {a: "{{ nodes.a.output }}"}}}`,
        ),
        catalogue,
      ).result.errors.map(({ message }) => message)
    deepEqual(found('{items: [], by: ""}'), ['a.by must be a list, but is ""'])
    deepEqual(found('{items: [], by: []}'), ['a.by must not be empty'])
    deepEqual(found('{items: [], by: [{field: ""}]}'), ['a.by.0.field must not be empty'])
    deepEqual(found(`{text: x, separator: ["${'x'.repeat(2_000)}"], max_parts: 0}`, 'split_text'), [
      'a.separator.0 must have at most 1000 characters',
      'a.max_parts must be at least 1',
    ])
    deepEqual(found('{operation: get, entity: contacts, id: "7"}', 'crm_manager'), [
      'a.id must be an id (UUID), such as 019a0000-0000-7000-8000-000000000001',
    ])
  })

  it('knows the tools of a language model, and the records that they may read', () => {
    const found = (tools: string) =>
      validateSpec(
        spec(`  a: {type: ai_prompt, config: {model: m, prompt: p, tools: ${tools}}, on_error: continue}`),
        catalogue,
      ).result.errors.map(({ code, path, hint }) => [code, path.replace('/nodes/a/config/', ''), hint])
    deepEqual(found('[{tool: search_records, entities: [contacts, deals]}]'), [])
    deepEqual(
      found('[{tool: serch_records, entities: [contacts]}, {tool: get_record, entities: [contact]}]'),
      [
        ['invalid_config', 'tools/0/tool', 'did you mean search_records?'],
        ['unknown_entity', 'tools/1/entities/0', 'did you mean contacts?'],
      ],
    )
    for (const [tools, path] of [
      ['"{{ run.id }}"', 'tools'],
      ['[{tool: get_record, entities: ["{{ run.id }}"]}]', 'tools/0/entities/0'],
    ] as const)
      deepEqual(found(tools), [['invalid_config', path, 'name the tools and the kinds of records']])
  })

  it('reports that nothing can follow a stop', () => {
    const { result } = validateSpec(spec(`  a: {type: stop, next: b}\n${set('b')}`), catalogue)
    const found = result.errors.find(({ code }) => code === 'unknown_handle')
    equal(found?.message, 'a stop ends the run: nothing can follow a')
  })

  it('reports all problems at once', () => {
    const { result } = validateSpec(
      spec('  a: {type: nope, tmeout: 1s}\n  b: {type: delay, config: {for: x}, next: gone}'),
      catalogue,
    )
    deepEqual(
      new Set(result.errors.map(({ code }) => code)),
      new Set(['unknown_key', 'unknown_node_type', 'invalid_config', 'missing_target']),
    )
  })

  it('checks raw definitions the same way, without lines', () => {
    const { result } = validateDefinition(
      {
        nodes: [
          { id: 'a', type: 'delay', config: { for: 'x' } },
          { id: 'a', type: 'stop' },
        ],
        edges: [{ from: 'a', handle: 'oops', to: 'b' }],
        extra: 1,
      },
      catalogue,
    )
    deepEqual(result.errors.map(({ code, path, line }) => [code, path, line]).sort(), [
      ['duplicate_node', '/nodes/1/id', undefined],
      ['invalid_config', '/nodes/1/config/for', undefined],
      ['missing_target', '/edges/0', undefined],
      ['unknown_handle', '/edges/0', undefined],
      ['unknown_key', '/extra', undefined],
    ])
    for (const raw of [null, 5, [], {}, { nodes: 'x' }, { nodes: [null, 1] }])
      equal(validateDefinition(raw, catalogue).result.valid, false)
  })

  it('refuses after few steps what would take a parser minutes', async () => {
    for (const bomb of [
      '! '.repeat(130_000),
      '& '.repeat(130_000),
      'k: 1\n'.repeat(20_000),
      Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join('\n'),
      '- '.repeat(100_000),
      '{a: '.repeat(3_000),
      '? '.repeat(5_000),
    ]) {
      const steps = await stepsOf(() => equal(validateSpec(bomb, catalogue).result.valid, false))
      ok(steps < 1_000, `${steps} steps for ${bomb.slice(0, 10)}`)
    }
  })

  it('refuses placeholders where nothing is rendered', () => {
    const spec =
      'name: Test\nnodes:\n  message: "{{ run.id }}"\n  b:\n    type: stop\n    retry: "{{ run.id }}"\n'
    const { result } = validateSpec(spec, catalogue)
    deepEqual(
      result.errors.map(({ path }) => path),
      ['/nodes/message', '/nodes/b/retry'],
    )
  })

  it('refuses a question mark as a node type', () => {
    const { result } = validateSpec('name: Test\nnodes:\n  a: {type: "?"}\n', catalogue)
    deepEqual(
      result.errors.map(({ code }) => code),
      ['unknown_node_type'],
    )
  })

  describe('with any input', () => {
    const texts = Object.values(valid)
    it('never throws on text', () => {
      fc.assert(
        fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.json()), (text) => {
          validateSpec(text, catalogue)
        }),
      )
    })

    it('never throws on a mutated spec, and reports positions within it', () => {
      fc.assert(
        fc.property(
          fc.constantFrom(...texts),
          fc.nat(),
          fc.nat(40),
          fc.oneof(fc.string(), fc.constantFrom('{{', '}}', '[', ': ', '\n', '__proto__', '- ', '|', '%')),
          (text, at, cut, put) => {
            const from = at % text.length
            const changed = text.slice(0, from) + put + text.slice(from + cut)
            const { result, definition } = validateSpec(changed, catalogue)
            for (const { line, column } of [...result.errors, ...result.warnings])
              ok(line! >= 1 && column! >= 1)
            if (definition) compile(definition)
          },
        ),
        { numRuns: 500 },
      )
    })

    it('never throws on a raw definition', () => {
      fc.assert(
        fc.property(
          fc.object({
            key: fc.oneof(
              fc.string(),
              fc.constantFrom('nodes', 'edges', 'id', 'type', 'config', 'from', 'to', 'inputs'),
            ),
            maxDepth: 5,
          }),
          (raw) => {
            validateDefinition(raw, catalogue)
          },
        ),
      )
    })
  })
})

describe('compiling', () => {
  it('reads no placeholders in what is not rendered', () => {
    const nodes = [{ id: 'a', type: 'code', config: { code: 'return { open: "{{", tag: "{%" }' } }]
    const { definition } = validateDefinition({ name: 'Braces', nodes, edges: [] }, catalogue)
    ok(definition)
    equal(compile(definition).start, 'a')
  })

  it('keeps every edge of any acyclic graph', () => {
    const graphs = fc.integer({ min: 1, max: 12 }).chain((size) =>
      fc
        .array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1), fc.constantFrom('true', 'false', 'error')), {
          maxLength: 40,
        })
        .map((pairs) => ({ size, pairs })),
    )
    fc.assert(
      fc.property(graphs, ({ size, pairs }) => {
        const config = { conditions: [{ left: 1, operator: 'eq', right: 1 }] }
        const nodes = Array.from({ length: size }, (_, index) => ({
          id: `n${index}`,
          type: 'condition',
          config,
        }))
        // A spine makes every node reachable; edges go forward only.
        const spine = nodes
          .slice(1)
          .map((node, index) => ({ from: `n${index}`, handle: 'true', to: node.id }))
        const others = pairs
          .filter(([a, b]) => a < b)
          .map(([a, b, handle]) => ({ from: `n${a}`, handle, to: `n${b}` }))
        const { result, definition } = validateDefinition({ nodes, edges: [...spine, ...others] }, catalogue)
        deepEqual(result.errors, [])
        const program = compile(definition!)
        const wanted = new Set([...spine, ...others].map(({ from, handle, to }) => `${from}:${handle}>${to}`))
        const next = Object.values(program.nodes).flatMap((node) =>
          Object.entries(node.next).flatMap(([handle, to]) => to.map((id) => `${node.id}:${handle}>${id}`)),
        )
        const incoming = Object.values(program.nodes).flatMap((node) =>
          node.incoming.map((from) => `${from}>${node.id}`),
        )
        deepEqual(next.sort(), [...wanted].sort())
        deepEqual(incoming.sort(), [...wanted].sort())
        equal(program.start, 'n0')
      }),
    )
  })

  it('turns durations into milliseconds, and sets defaults', () => {
    const { definition } = validateSpec(
      spec(
        '  a: {type: api_request, config: {url: "https://x.test"}, timeout: 2m, retry: {max_attempts: 4, initial_interval: 90s}}',
        'settings: {timeout: 1h, concurrency: 2}',
      ),
      catalogue,
    )
    const program = compile(definition!)
    deepEqual(program.settings, { concurrency: 2, timeout_ms: 3_600_000 })
    equal(program.nodes.a!.timeout_ms, 120_000)
    deepEqual(program.nodes.a!.retry, {
      max_attempts: 4,
      initial_interval_ms: 90_000,
      backoff: 2,
      max_interval_ms: 90_000,
    })
  })

  it('compiles the policies of concurrency, and refuses a limit that has no effect', () => {
    const settings = (concurrency: string) => {
      const { definition, result } = validateSpec(
        spec('  a: {type: stop}', `settings: {concurrency: ${concurrency}}`),
        catalogue,
      )
      return definition ? compile(definition).settings : result.errors.map(({ path }) => path)
    }
    deepEqual(settings('{policy: skip, limit: 3}'), { concurrency: 3, on_limit: 'skip' })
    deepEqual(settings('{policy: cancel_running}'), { concurrency: 1, on_limit: 'cancel_running' })
    deepEqual(settings('{limit: 2}'), { concurrency: 2 })
    deepEqual(settings('{policy: allow}'), {})
    deepEqual(settings('{policy: allow, limit: 2}'), ['/settings/concurrency/limit'])
    deepEqual(settings('{policy: replace}'), ['/settings/concurrency/policy'])
  })

  it("uses the retry of the node's type if the node has none: one attempt for most", () => {
    const text = spec(`  a: {type: delay, config: {for: 1s}}
  b: {type: api_request, config: {url: "https://x.test"}, retry: {backoff: 3}}`)
    const { nodes } = compile(validateSpec(text, catalogue).definition!)
    const usual = { initial_interval_ms: 1_000, max_interval_ms: 60_000 }
    deepEqual(nodes.a!.retry, { ...usual, max_attempts: 1, backoff: 2 })
    deepEqual(nodes.b!.retry, { ...usual, max_attempts: 3, backoff: 3 })
  })
})
