import assert from 'node:assert/strict'
import { z } from 'zod'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { fieldsSchema } from '../../../db/model/records/schemas.ts'
import { mergeableKinds } from '../../../workflows/shared/record-kinds.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

interface EventType {
  name: string
  subject: string
  data_schema: { properties: Record<string, unknown> }
  example: { event: string; data: Record<string, unknown>; previous?: unknown }
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

  it('lists the events that an outgoing webhook can select', () => {
    for (const kind of kindNames) {
      const { object, events: own = {} } = kinds[kind]
      const names = ['created', 'updated', 'deleted', 'restored', ...Object.keys(own)]
      for (const name of names) assert.ok(events.has(`${object}.${name}`), `${object}.${name}`)
      const isMergeable = mergeableKinds.some((one) => one === kind)
      assert.equal(events.has(`${object}.merged`), isMergeable, object)
    }
    assert.ok(events.has('workflow.failed'))
    for (const name of ['invoice.created', 'invoice.paid'])
      assert.deepEqual([events.get(name)?.subject, events.get(name)?.example.event], ['any', name])
  })

  it('has the schema of the data of each event, and a valid example', () => {
    const { data_schema, example } = events.get('contact.created')!
    assert.ok(data_schema.properties.email)
    assert.equal(example.event, 'contact.created')
    for (const kind of kindNames)
      for (const event of events.values())
        if (event.subject === kinds[kind].object)
          fieldsSchema(kind)
            .extend(event.name.endsWith('.merged') ? { merged_from: z.uuid() } : {})
            .strict()
            .parse(event.example.data)
    const failed = events.get('workflow.failed')!
    assert.deepEqual(Object.keys(failed.data_schema.properties), Object.keys(failed.example.data))
  })

  it('shows the old values of changed fields', () => {
    assert.ok(events.get('contact.updated')!.example.previous)
    assert.equal(events.get('contact.created')!.example.previous, undefined)
    const won = events.get('deal.won')!.example
    assert.deepEqual([won.data.stage, won.data.probability], ['won', 100])
    assert.deepEqual(won.previous, { stage: 'proposal' })
  })
})
