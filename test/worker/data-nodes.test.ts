import { deepEqual, equal } from 'node:assert/strict'
import { catalogue } from '../../api/v1/catalogue.ts'
import { validateSpec } from '../../workflows/authoring/validate.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** Each of its nodes reads the nodes before it. */
const SPEC = `name: Guests of the week
inputs: {guests: {type: string, required: true}}
nodes:
  rows: {type: parse_csv, config: {text: "{{ inputs.guests }}"}}
  paying:
    type: filter_items
    config: {items: "{{ nodes.rows.output.rows }}", conditions: [{field: Paid, operator: gt, right: 0}]}
  totals:
    type: aggregate_items
    config:
      items: "{{ nodes.paying.output.items }}"
      group_by: [City]
      values: {total: {function: sum, field: Paid}}
  sorted:
    type: sort_items
    config: {items: "{{ nodes.totals.output.groups }}", by: [{field: values.total, direction: desc}]}
  due: {type: format_date, config: {value: "2026-01-31", add: {months: 1}, format: "%-d %B %Y"}}
  letter:
    type: render_text
    config:
      items: "{{ nodes.sorted.output.items }}"
      text: "{{ index | plus: 1 }}. {{ item.group.City }}: {{ item.values.total }}"
      after: "\\nDue on {{ nodes.due.output.text }}"
  lines: {type: split_text, config: {text: "{{ nodes.letter.output.text }}", separator: "\\n"}}
  phone: {type: format_phone, config: {phone: "{{ nodes.rows.output.rows[0].Phone }}", country: CH, format: national}}
  data: {type: parse_json, config: {text: "{{ nodes.lines.output.parts | json }}"}}
  key: {type: hash, config: {value: "{{ nodes.data.output.data }}", encoding: base64url}}
outputs:
  lines: "{{ nodes.data.output.data }}"
  phone: "{{ nodes.phone.output.phone }}"
  hash: "{{ nodes.key.output.hash }}"
`

describe('nodes that work on lists and texts, in one run', () => {
  const suite = withWorker()

  it('hand their results to each other, in one segment', async () => {
    const { result, definition } = validateSpec(SPEC, catalogue)
    deepEqual([result.errors, result.warnings], [[], []])
    const guests = [
      'Name;City;Paid;Phone',
      'Ada;Bern;12.50;044 668 18 00',
      'Bob;Basel;30.10;',
      'Cy;Bern;0.00;',
      'Di;bern;8.05;',
    ].join('\r\n')
    const id = await queueRun(suite.db, suite.organizationId, definition!, { guests })
    const { status, outputs, error } = await untilRun(suite.db, id)
    equal(status, 'completed', JSON.stringify(error))
    deepEqual(outputs, {
      lines: ['1. Basel: 30.10', '2. Bern: 20.55', 'Due on 28 February 2026'],
      phone: '044 668 18 00',
      hash: 'IPHRTxEeL_pvxhB5wukpr9cwxRm_Y3QmWj9SRDLLjas',
    })
    equal((await suite.db.system('run_segments').where({ run_id: id })).length, 1)
    const letter = await suite.db.system('run_nodes').where({ run_id: id, node_id: 'letter' }).first()
    equal(letter.input.text, '{{ index | plus: 1 }}. {{ item.group.City }}: {{ item.values.total }}')
  })
})
