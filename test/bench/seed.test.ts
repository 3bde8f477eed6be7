import { equal } from 'node:assert/strict'
import pg from 'pg'
import { withApi } from '../support/with-api.ts'
import { fill } from './seed.ts'

describe('the contacts of the benches', () => {
  const suite = withApi()

  it('fit the tables, and are found as others are', async () => {
    const { api, db } = suite
    const client = new pg.Client({ connectionString: db.url })
    await client.connect()
    try {
      await fill(client, api.organizationId, 3, true)
    } finally {
      await client.end()
    }
    const { body } = await api.request('GET', '/v1/objects/contacts?count=exact&q=crm-2')
    equal(body.total, 1)
    equal(body.data[0].external_id, 'crm-2')
  })
})
