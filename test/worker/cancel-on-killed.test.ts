import assert from 'node:assert/strict'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { startStack, type TestStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

const RUNS = 200

describe('runs that an event cancels while the worker is killed', () => {
  let stack: TestStack
  let db: Database
  before(async () => {
    stack = await startStack({ onSuite: true })
    db = connect({ url: stack.databaseUrl })
  })
  after(async () => {
    await db?.close()
    await stack?.stop()
  })

  async function send(method: string, path: string, body?: unknown) {
    const answer = await fetch(stack.apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${stack.key}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const json = (await answer.json()) as { id: string; workflow_id: string; error?: unknown }
    assert.ok(answer.status < 300, JSON.stringify(json))
    return json
  }
  const count = async (where: object) =>
    Number((await db.system('runs').where(where).count<{ count: string }[]>())[0]!.count)

  it('are all cancelled by the next worker', async () => {
    const { workflow_id } = await send('POST', '/v1/workflows', {
      spec: `name: Course
inputs: {contact: {type: string, required: true}}
settings: {cancel_on: {event: contact.deleted, when: "{{ event.record.id == inputs.contact }}"}}
nodes: {pause: {type: delay, config: {for: 1d}}}
`,
    })
    const [gone, stays] = [
      await send('POST', '/v1/objects/contacts', { first_name: 'Ada' }),
      await send('POST', '/v1/objects/contacts', { first_name: 'Bob' }),
    ]
    const start = (contact: string) =>
      send('POST', `/v1/workflows/${workflow_id}/run`, { inputs: { contact }, confirm: true })
    await start(stays.id)
    for (let n = 0; n < RUNS; n++) await start(gone.id)
    await until(async () => (await count({ workflow_id, status: 'running' })) > 10 || undefined, 'some run')

    await send('DELETE', `/v1/objects/contacts/${gone.id}`)
    await until(
      async () => db.system('runs').where({ workflow_id }).whereNotNull('cancel_requested_at').first('id'),
      'the first cancellations',
    )
    stack.kill('worker')
    await until(
      async () => (await count({ workflow_id, status: 'cancelled' })) === RUNS || undefined,
      'the cancellations',
      120,
    )
    const [other] = await db.system('runs').where({ workflow_id }).whereNot({ status: 'cancelled' })
    assert.equal(other.inputs.contact, stays.id)
    assert.equal(other.cancel_requested_at, null)
    assert.equal(await db.system('event_cancels').first('id'), undefined)
  })
})
