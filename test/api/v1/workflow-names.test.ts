import { deepEqual, equal, match } from 'node:assert/strict'
import { withApi } from '../../support/with-api.ts'

interface Found {
  code: string
  message: string
  line: number
  hint?: string
}

describe('validation with what the organization has', () => {
  const suite = withApi()
  const post = (path: string, body: unknown) => suite.api.request('POST', path, { body })
  const found = async (lines: string) => {
    const { body } = await post('/v1/workflows/validate', { spec: `name: Test\n${lines}` })
    return [...body.errors, ...body.warnings].map(({ code, line, hint, message }: Found) => [
      code,
      line,
      hint ?? message,
    ])
  }

  it('knows the custom fields, where they are read, written, filtered and compared', async () => {
    const field = { name: 'tier', type: 'select', options: ['gold', 'silver'] }
    equal((await post('/v1/custom-fields/contacts', field)).status, 201)
    const trigger = 'trigger: {type: event, events: [contact.created]}'
    const one = (config: string) => found(`${trigger}\nnodes:\n  a: {type: ${config}}`)
    const search = (more: string) =>
      one(
        `crm_manager, config: {operation: search, entity: contacts, ${more}}, next: {success: end, error: end}`,
      )
    deepEqual(await one('stop, config: {message: "x {{ trigger.record.custom_fields.tier }}"}'), [])
    deepEqual(await one('stop, config: {message: "x {{ trigger.record.custom_fields.teir }}"}'), [
      ['unknown_custom_field', 4, 'write `tier` instead of `teir`'],
    ])
    deepEqual(await one('stop, when: "{{ trigger.record.custom_fields.tier == \'godl\' }}"'), [
      ['impossible_comparison', 4, 'write `gold` instead of `godl`'],
    ])
    const write = (fields: string) =>
      one(
        `crm_manager, config: {operation: update, entity: contacts, id: "{{ run.id }}", fields: {custom_fields: {${fields}}}}`,
      )
    deepEqual(await write('tier: gold'), [])
    deepEqual(await write('tier: silvr'), [['invalid_value', 4, 'did you mean silver?']])
    deepEqual(await write('teir: gold'), [['unknown_custom_field', 4, 'did you mean tier?']])
    for (const [more, hint] of [
      ['filters: {custom_fields.teir: gold}', 'did you mean custom_fields.tier?'],
      ['sort: custom_fields.teir', 'did you mean custom_fields.tier?'],
      [
        'filters: {custom_fields.points: gold}',
        'define it: POST /v1/custom-fields/contacts {"name": "points", "type": …}, with the scope contacts:write',
      ],
    ] as const)
      deepEqual(
        (await search(more)).filter(([code]) => code !== 'unused_output'),
        [['unknown_custom_field', 4, hint]],
      )
  })

  it('knows the inputs of the workflows that a node starts', async () => {
    const spec = `name: Welcome
inputs: {email: {type: string, required: true}, days: {type: number, default: 3}}
nodes: {a: {type: stop, config: {message: "{{ inputs.email }} {{ inputs.days }}"}}}`
    const made = await post('/v1/workflows', { spec })
    equal(made.status, 201)
    equal((await post(`/v1/workflows/${made.body.workflow_id}/activate`, {})).status, 200)
    const start = (inputs: string) =>
      found(
        `nodes:\n  a:\n    type: run_workflow\n    config:\n      workflow: Welcome\n      inputs: ${inputs}`,
      )
    deepEqual(await start('{email: a@example.com, days: 5}'), [])
    deepEqual(await start('{email: "{{ run.id }}", days: "{{ run.id }}"}'), [
      [
        'workflow_inputs',
        7,
        'the input days of the workflow "Welcome" must be of type number: this is of type string',
      ],
    ])
    deepEqual(await start('{emial: a@example.com}'), [
      ['missing_value', 6, 'rename emial to email'],
      ['workflow_inputs', 7, 'did you mean email?'],
    ])
    deepEqual(await start('{}'), [['missing_value', 6, 'add `email: …` (string) to inputs']])
    const unsaved = await post('/v1/workflows', {
      spec: 'name: Caller\nnodes: {a: {type: run_workflow, config: {workflow: Welcome}}}',
    })
    deepEqual(
      [
        unsaved.status,
        unsaved.body.validation?.errors?.[0]?.code ?? unsaved.body.error?.validation?.errors?.[0]?.code,
      ],
      [400, 'missing_value'],
    )
    deepEqual(await start('{email: a@example.com, days: soon}'), [
      ['workflow_inputs', 7, 'the input days of the workflow "Welcome" must be of type number'],
    ])
    deepEqual(await start('"{{ trigger.run }}"'), [])
  })

  it('knows the outputs of the workflows that a node starts', async () => {
    const spec = `name: Sum up
nodes: {a: {type: set_fields, config: {fields: {n: 5}}}}
outputs: {total: "{{ nodes.a.output.n }}", count: 1}`
    equal((await post('/v1/workflows', { spec })).status, 201)
    const reading = (text: string, more = '') =>
      found(
        `nodes:\n  a:\n    type: run_workflow\n    config: {workflow: Sum up${more}}\noutputs: {x: "{{ ${text} }}"}`,
      ).then((findings) => findings.filter(([code]) => code !== 'draft_workflow'))
    deepEqual(await reading('nodes.a.output.outputs.total'), [])
    deepEqual(await reading('nodes.a.output.outputs | json'), [])
    for (const text of ['totl', 'totl | default: 0'])
      deepEqual(await reading(`nodes.a.output.outputs.${text}`), [
        [
          'workflow_outputs',
          6,
          'write `nodes.a.output.outputs.total` instead of `nodes.a.output.outputs.totl`',
        ],
      ])
    deepEqual(await reading('nodes.a.output.outputs.zzz'), [['workflow_outputs', 6, 'one of total, count']])
    deepEqual(await reading('nodes.a.output.outputs.total', ', wait: false'), [
      [
        'unknown_field',
        6,
        'with `wait: false` the outputs are null, because the run has not ended: remove `wait`',
      ],
    ])
  })

  it('warns of a mail that the service cannot send', async () => {
    const mail = 'type: send_email, config: {to: ada@example.com, subject: Hello, text: Hello}'
    const warnings = await found(`nodes:\n  a: {${mail}}`)
    deepEqual(
      warnings.map(([code, line]) => [code, line]),
      [
        ['service_not_configured', 3],
        ['service_not_configured', 3],
      ],
    )
    match(String(warnings[0]![2]), /SMTP_URL/)
  })
})
