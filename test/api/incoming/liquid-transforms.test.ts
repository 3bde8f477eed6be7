import assert from 'node:assert/strict'
import { filtersProblem } from '../../../db/model/incoming/mapping/liquid.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

describe('Liquid filters in mapping rules', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const rule = (from: string, to: string, filters: string) => ({
    from,
    to,
    transforms: [{ type: 'liquid', filters }],
  })

  it('are those of workflows, and read the payload', async () => {
    const webhook = await test.createWebhook({
      field_mapping: {
        mode: 'manual',
        rules: [
          { from: 'mail', to: 'email' },
          rule('name', 'first_name', 'split: " " | first | capitalize'),
          rule('name', 'last_name', 'append: " " | append: payload.house | strip | truncate: 12, ""'),
          rule('interests', 'tags', 'split: ";"'),
          rule('when', 'job_title', 'date: "%Y"'),
          rule('score', 'custom_fields.score', 'times: 2'),
        ],
      },
    })
    const payload = {
      mail: 'ada@example.com',
      name: 'ada',
      house: 'Lovelace of Ockham',
      interests: 'mills;engines',
      when: 'no date',
      score: '21',
    }
    const { status, body } = await test.send(webhook, payload)
    assert.equal(status, 200, JSON.stringify(body))
    const { first_name, last_name, tags, job_title, custom_fields } = await test.contact(body.record_id)
    assert.deepEqual(
      { first_name, last_name, tags, job_title, custom_fields },
      {
        first_name: 'Ada',
        last_name: 'ada Lovelace',
        tags: ['mills', 'engines'],
        job_title: 'no date',
        custom_fields: { score: '42' },
      },
    )
  })

  it('are refused if they are none', async () => {
    for (const [filters, reason] of [
      ['upcas', /undefined filter/],
      ['upcase }} {{ value', /filters only/],
      ['append: secrets.key', /secrets is not available/],
      ['append: trigger.payload', /trigger is not available/],
    ] as const) {
      assert.match(filtersProblem(filters) ?? '', reason, filters)
      const { body } = await test.app(
        'POST',
        '/webhooks/incoming',
        { name: 'x', field_mapping: { mode: 'manual', rules: [rule('a', 'email', filters)] } },
        422,
      )
      assert.deepEqual(body.detail[0].loc, ['body', 'field_mapping', 'rules', 0, 'transforms', 0, 'filters'])
    }
  })
})
