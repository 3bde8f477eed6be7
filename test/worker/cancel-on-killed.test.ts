import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { withStack } from '../support/with-stack.ts'

const RUNS = 200

describe('runs that an event cancels while the worker is killed', () => {
  const on = withStack()

  const count = async (where: object) =>
    Number((await on.db.system('runs').where(where).count<{ count: string }[]>())[0]!.count)

  it('are all cancelled by the next worker', async () => {
    const { workflow_id } = await on.v1<{ workflow_id: string }>('POST', '/workflows', {
      spec: `name: Course
inputs: {contact: {type: string, required: true}}
settings: {cancel_on: {event: contact.deleted, when: "{{ event.record.id == inputs.contact }}"}}
nodes: {pause: {type: delay, config: {for: 1d}}}
`,
    })
    const create = (first_name: string) => on.v1<{ id: string }>('POST', '/objects/contacts', { first_name })
    const [gone, stays] = [await create('Ada'), await create('Bob')]
    const start = (contact: string) =>
      on.v1('POST', `/workflows/${workflow_id}/run`, { inputs: { contact }, confirm: true })
    await start(stays.id)
    for (let n = 0; n < RUNS; n++) await start(gone.id)
    await until(async () => (await count({ workflow_id, status: 'running' })) > 10 || undefined, 'some run')

    await on.v1('DELETE', `/objects/contacts/${gone.id}`)
    await until(
      async () => on.db.system('runs').where({ workflow_id }).whereNotNull('cancel_requested_at').first('id'),
      'the first cancellations',
    )
    on.stack.kill('worker')
    await until(
      async () => (await count({ workflow_id, status: 'cancelled' })) === RUNS || undefined,
      'the cancellations',
      120,
    )
    const [other] = await on.db.system('runs').where({ workflow_id }).whereNot({ status: 'cancelled' })
    assert.equal(other.inputs.contact, stays.id)
    assert.equal(other.cancel_requested_at, null)
    assert.equal(await on.db.system('event_cancels').first('id'), undefined)
  })
})
