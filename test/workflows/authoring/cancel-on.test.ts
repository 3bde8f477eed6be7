import { deepEqual, equal, match } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import { writeSpec } from '../../../workflows/authoring/write/write-spec.ts'

const TRIGGER = 'trigger: {type: event, events: [contact.created]}'
const check = (rules: string, trigger = TRIGGER) =>
  validateSpec(
    `name: Test\n${trigger}\ninputs: {least: {type: number, default: 1}}\nsettings:\n  cancel_on: ${rules}\nnodes:\n  a: {type: stop, config: {outputs: {x: "{{ inputs.least }}"}}}\n`,
    catalogue,
  )
const found = (rules: string, trigger?: string) => {
  const { errors, warnings } = check(rules, trigger).result
  return [...errors, ...warnings]
}
const SAME = '"{{ event.record.id == trigger.record.id }}"'

describe('settings.cancel_on', () => {
  it('compiles to the events and their conditions', () => {
    const { definition, result } = check(
      `[{event: contact.deleted, when: ${SAME}}, {event: [order.cancelled, order.refunded], when: "{{ event.data.total > inputs.least and run.id != event.id and org.id != nil }}"}]`,
    )
    deepEqual(result, { valid: true, errors: [], warnings: [] })
    deepEqual(compile(definition!).settings.cancel_on, [
      { events: ['contact.deleted'], when: '{{ event.record.id == trigger.record.id }}', same_record: true },
      {
        events: ['order.cancelled', 'order.refunded'],
        when: '{{ event.data.total > inputs.least and run.id != event.id and org.id != nil }}',
      },
    ])
  })

  it('can be one mapping, also of a raw definition, and is written to YAML again', () => {
    const { definition } = check(`{event: contact.deleted, when: ${SAME}}`)
    equal(compile(definition!).settings.cancel_on!.length, 1)
    const raw = validateDefinition(definition, catalogue)
    deepEqual(raw.result, { valid: true, errors: [], warnings: [] })
    match(writeSpec(raw.definition!)!, /cancel_on:/)
  })

  it('finds the records of a condition by the index only if no other record can satisfy it', () => {
    const isSame = (when: string) =>
      compile(check(`[{event: deal.won, when: "${when}"}]`).definition!).settings.cancel_on![0]!
        .same_record === true
    for (const when of [
      '{{ trigger.record.id == event.record.id }}',
      '{{ event.record.id == trigger.record.id and event.record.amount > 5 }}',
      '{{ event.record.amount > 5 and (event.record.id == trigger.record.id) }}',
    ])
      equal(isSame(when), true, when)
    for (const when of [
      '{{ event.record.id == trigger.record.id or event.record.amount > 5 }}',
      '{{ not (event.record.id == trigger.record.id) }}',
      '{{ event.record.id != trigger.record.id }}',
      '{{ event.record.company_id == trigger.record.id }}',
      '{{ (event.record.id == trigger.record.id) | default: true }}',
      '{{ event.record.id == trigger.record.id ? true : true }}',
    ])
      equal(isSame(when), false, when)
  })

  const REFUSED: [rules: string, code: string, path: string, text: RegExp][] = [
    [
      `[{event: contact.deletd, when: ${SAME}}]`,
      'unknown_event',
      '/settings/cancel_on/0/event',
      /contact\.deleted/,
    ],
    [
      `[{event: [deal.won, deletd], when: ${SAME}}]`,
      'unknown_event',
      '/settings/cancel_on/0/event/1',
      /<entity>/,
    ],
    [
      `{event: contact.deletd, when: ${SAME}}`,
      'unknown_event',
      '/settings/cancel_on/event',
      /contact\.deleted/,
    ],
    [
      '[{event: contact.deleted, when: "{{ event.record.emial == trigger.record.email }}"}]',
      'unknown_field',
      '/settings/cancel_on/0/when',
      /email/,
    ],
    [
      '[{event: contact.deleted, when: "{{ event.record.id == trigger.record.idd }}"}]',
      'unknown_field',
      '/settings/cancel_on/0/when',
      /\bid\b/,
    ],
    [
      '[{event: contact.deleted, when: "{{ event.id == inputs.lest }}"}]',
      'unknown_input',
      '/settings/cancel_on/0/when',
      /least/,
    ],
    [
      '[{event: contact.deleted, when: "{{ event.email == trigger.record.email }}"}]',
      'unknown_field',
      '/settings/cancel_on/0/when',
      /event\.record\.email/,
    ],
    [
      '[{event: contact.deleted, when: "{{ nodes.a.output.id == event.record.id }}"}]',
      'unknown_root',
      '/settings/cancel_on/0/when',
      /not available/,
    ],
    [
      '[{event: contact.deleted, when: "{{ evnt.record.id == trigger.record.id }}"}]',
      'unknown_root',
      '/settings/cancel_on/0/when',
      /event/,
    ],
    [
      '[{event: contact.deleted, when: "{{ event.record.lead_status == \'opne\' }}"}]',
      'impossible_comparison',
      '/settings/cancel_on/0/when',
      /open/,
    ],
    [
      '[{event: contact.deleted, when: "{{ event.record.id | nofilter }}"}]',
      'placeholder_syntax',
      '/settings/cancel_on/0/when',
      /nofilter/,
    ],
    ['[{when: "{{ event.id == run.id }}"}]', 'schema', '/settings/cancel_on/0/event', /event/],
    ['[]', 'schema', '/settings/cancel_on', /./],
    [`[{event: [], when: ${SAME}}]`, 'schema', '/settings/cancel_on/0/event', /./],
    [`[{event: contact.deleted, whne: ${SAME}}]`, 'unknown_key', '/settings/cancel_on/0/whne', /when/],
  ]
  for (const [rules, code, path, text] of REFUSED)
    it(`refuses ${rules}`, () => {
      const { errors } = check(rules).result
      const first = errors.find((one) => one.code === code)
      equal(first?.path, path, JSON.stringify(errors))
      match(`${first!.message} ${first!.hint}`, text)
      equal(first!.line, 5)
    })

  const WARNED: [rules: string, path: string][] = [
    ['[{event: contact.deleted}]', '/settings/cancel_on/0/event'],
    [
      '[{event: contact.deleted, when: "event.record.id == trigger.record.id"}]',
      '/settings/cancel_on/0/when',
    ],
    ['[{event: contact.deleted, when: true}]', '/settings/cancel_on/0/when'],
    ['[{event: contact.deleted, when: "{{ true }}"}]', '/settings/cancel_on/0/when'],
  ]
  for (const [rules, path] of WARNED)
    it(`only warns of ${rules}, which always holds`, () => {
      const { valid, warnings } = check(rules).result
      equal(valid, true)
      deepEqual(
        warnings.map((one) => [one.code, one.path]),
        [['constant_when', path]],
      )
    })

  it('needs no condition for an event that a workflow raises', () => {
    deepEqual(found('[{event: campaign.stopped}]'), [])
  })

  it('warns of a record that the trigger does not give', () => {
    deepEqual(
      found(`[{event: contact.deleted, when: ${SAME}}]`, 'trigger: manual').map(({ code }) => code),
      ['trigger_without_record'],
    )
  })
})
