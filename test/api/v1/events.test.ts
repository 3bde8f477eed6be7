import assert from 'node:assert/strict'
import { recordSchema } from '../../../db/records/schemas.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

interface EventType {
  name: string
  subject: string
  data_schema: { properties: Record<string, unknown> } | null
  example: { event: string; data: Record<string, unknown>; previous?: unknown } | null
}

describe('the catalogue of events', () => {
  let db: TestDatabase
  let api: TestApi
  let events: Map<string, EventType>

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    const { status, body } = await api.request('GET', '/v1/events')
    assert.equal(status, 200)
    events = new Map(body.data.map((event: EventType) => [event.name, event]))
  })
  after(async () => {
    await api?.close()
    await db?.drop()
  })

  it('names what an outgoing webhook can select', () => {
    for (const name of ['contact.created', 'company.updated', 'workflow.failed']) assert.ok(events.has(name))
  })

  it('gives each the schema of its data, and an example that keeps to it', () => {
    const { data_schema, example } = events.get('contact.created')!
    assert.ok(data_schema!.properties.email)
    assert.equal(example!.event, 'contact.created')
    for (const name of ['contact.created', 'contact.deleted'])
      recordSchema('contacts').strict().parse(events.get(name)!.example!.data)
    recordSchema('companies').strict().parse(events.get('company.updated')!.example!.data)
    const failed = events.get('workflow.failed')!
    assert.deepEqual(Object.keys(failed.data_schema!.properties), Object.keys(failed.example!.data))
  })

  it('shows the old values on updates only', () => {
    assert.ok(events.get('contact.updated')!.example!.previous)
    assert.equal(events.get('contact.created')!.example!.previous, undefined)
  })
})
