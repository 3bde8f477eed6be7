import { deepEqual, equal, match } from 'node:assert/strict'
import { createSchema } from '../../db/model/records/schemas.ts'
import { createRecord } from '../../db/records/create.ts'
import { testActor } from '../support/database.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

describe('analytics in workflows', () => {
  const suite = withWorker()
  const run = async (config: Record<string, unknown>, inputs = {}) => {
    const id = await queueRun(
      suite.db,
      suite.organizationId,
      {
        nodes: [{ id: 'ask', type: 'analytics_query', config }],
        edges: [],
        outputs: { answer: '{{ nodes.ask.output }}' },
        inputs: { period: { type: 'string' }, stage: { type: 'string' } },
      },
      inputs,
    )
    return untilRun(suite.db, id)
  }

  it('are computed with rendered settings, of records that the run sees', async () => {
    await suite.db.tenant(suite.organizationId, testActor, async (tx) => {
      for (const [stage, amount] of [
        ['won', '10.50'],
        ['won', '1.25'],
        ['lost', '99.00'],
      ])
        await createRecord(
          tx,
          'deals',
          createSchema('deals').parse({ name: 'D', stage, amount, currency: 'EUR' }),
        )
    })
    const { status, outputs } = await run(
      {
        metric: 'deals.value',
        group_by: ['stage'],
        last: '{{ inputs.period }}',
        time_zone: 'Europe/Zurich',
        filter: { stage: ['{{ inputs.stage }}', 'lead'] },
      },
      { period: '7d', stage: 'won' },
    )
    equal(status, 'completed')
    const { answer } = outputs as { answer: Record<string, unknown> }
    deepEqual(answer.rows, [
      { bucket: null, group: { stage: 'won' }, other: false, currency: 'EUR', value: '11.75' },
    ])
    deepEqual([answer.total, answer.time_zone, answer.unit], ['11.75', 'Europe/Zurich', 'money'])
  })

  it('fail with what to write instead, where only a run knows the value', async () => {
    const { status, error } = await run(
      { metric: 'deals.value', filter: { stage: '{{ inputs.stage }}' }, last: '{{ inputs.period }}' },
      { period: 'a week', stage: 'wonn' },
    )
    equal(status, 'failed')
    const { code, message } = error as { code: string; message: string }
    equal(code, 'validation_error')
    match(message, /stage cannot be wonn: did you mean won\?; last: must be a duration, such as 24h or 7d/)
  })
})
