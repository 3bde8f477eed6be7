import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { LOOP } from '../../../workflows/shared/limits.ts'
import { withApiAndWorker } from '../../support/with-api.ts'
import { historyOf } from '../../support/worker.ts'

describe('the test of a node that waits or loops', () => {
  const suite = withApiAndWorker()

  async function test(node_type: string, config: object, inputs: object = {}, confirm = true) {
    const body = { node_type, config, inputs, confirm }
    const answer = await suite.api.request('POST', '/v1/workflows/nodes/test', { body })
    equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body
  }
  const said = ({ log }: { log: { message: string }[] }) => log.map(({ message }) => message).join('\n')
  const inMinutes = (minutes: number, time: string) => {
    const off = Math.abs(Date.parse(time) - Date.now() - minutes * 60_000)
    ok(off < 20_000, `${time} is not in ${minutes} minutes`)
  }

  it('evaluates the list of for_each, and says how its body would run', async () => {
    const list = { items: '{{ inputs.people | where: "vip" }}', concurrency: 2 }
    const people = [
      { name: 'Ada', vip: true },
      { name: 'Bob', vip: false },
      { name: 'Cy', vip: true },
    ]
    const many = await test('for_each', list, { people })
    deepEqual([many.error, many.handle, many.output?.count], [undefined, 'item', 2])
    deepEqual(many.rendered_config.items, [people[0], people[2]])
    match(said(many), /^would run its body for 2 items, 2 at a time$/)
    const none = await test('for_each', list, { people: [] })
    deepEqual([none.status, none.handle, none.output.count], ['completed', 'done', 0])
    const text = await test('for_each', { items: '{{ inputs.people }}' }, { people: 'Ada' })
    deepEqual(text.status, 'failed')
    match(text.error.message, /^items must be a list, but is "Ada": .*`\| compact`/)
    const long = { items: '{{ inputs.n }}' }
    const n = Array.from({ length: LOOP.items + 1 }, () => 1)
    equal((await test('for_each', long, { n })).error.code, 'too_many_items')
  })

  it('evaluates the time of delay and wait_until, and does not wait for it', async () => {
    const delay = await test('delay', { for: '{{ inputs.n }}m' }, { n: 90 })
    inMinutes(90, delay.output.until)
    equal(said(delay), `would wait until ${delay.output.until}, and leave by success`)
    const year = new Date().getUTCFullYear() + 1
    const until = await test('wait_until', {
      until: `${year}-07-01`,
      timezone: 'Europe/Zurich',
    })
    equal(until.output.until, `${year}-06-30T22:00:00.000Z`)
    match(said(until), /^would wait until .*T22:00:00.000Z, and leave by success$/)
    const past = await test('wait_until', { until: '2020-01-01' })
    deepEqual([past.status, said(past)], ['completed', 'left by success'])
    const far = await test('wait_until', { until: '2100-01-01' })
    equal(far.error.code, 'time_too_far')
    match((await test('delay', { for: 'soon' })).error.message, /for must be a duration/)
  })

  it('reads the values of the filter of wait_for_event, and finds what is wrong with it', async () => {
    const wait = (when: string, inputs = {}) => test('wait_for_event', { event: 'deal.won', when }, inputs)
    const good = await wait('{{ event.record.amount > inputs.least }}', { least: 5 })
    deepEqual([good.status, good.handle, good.warnings], ['completed', 'received', undefined])
    match(said(good), /^would wait for the event deal.won for which .* holds, without limit/)
    const lacking = await wait('{{ event.record.amount > inputs.least }}')
    match(lacking.error.message, /undefined variable: inputs.least/)
    const broken = await wait('{{ event.record.amount >')
    deepEqual([broken.status, broken.error.code], ['failed', 'placeholder_error'])
    const unknown = await wait('{{ event.amount > 5 }}')
    equal(unknown.status, 'completed')
    match(unknown.warnings[0], /^config\.when: an event has no amount: it has id, name,/)
    const { preview } = await test(
      'wait_for_event',
      { event: 'deal.won', when: '{{ event.amount }}' },
      {},
      false,
    )
    match(preview.warnings[0], /^config\.when: an event has no amount/)
  })

  it('asks and tells nobody, and runs in Temporal as any other', async () => {
    const signal = await test('wait_for_signal', { name: 'go', timeout: '2h' })
    match(said(signal), /^would wait for the signal go, until 2.*Z at most, and leave by received$/)
    const asked = await test('approval', { title: 'May I?', assignees: ['ann@example.com'] })
    match(said(asked), /^would wait for a decision of ann@example.com, without limit/)
    for (const table of ['approval_mails', 'run_waits'])
      deepEqual(await suite.db.system(table).where({ organization_id: suite.api.organizationId }), [], table)
    const { id } = await suite.db.system('runs').where({ kind: 'node_test' }).orderBy('id', 'desc').first()
    const events = await historyOf(suite.worker.client, `node-test:${id}`)
    ok(
      events.some(
        ({ activityTaskScheduledEventAttributes: task }) => task?.activityType?.name === 'testOneNode',
      ),
    )
  })
})
