import assert from 'node:assert/strict'
import { recordsIn } from '../../../activities/effects/records.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('the records of nodes', () => {
  let db: TestDatabase
  let organization: string
  before(async () => {
    db = await createTestDatabase()
    organization = await createOrganization(db)
  })
  after(() => db?.drop())

  it('are searched with at most the values of one statement; more fail the node permanently', async () => {
    const search = (filters: Record<string, unknown>) =>
      db.tenant(organization, testActor, (tx) => recordsIn(tx).search('contacts', { filters }))
    const emails = (count: number) => Array.from({ length: count }, (_, i) => `n${i}@example.com`)
    assert.deepEqual((await search({ 'email[in]': emails(10_000) })).data, [])
    await assert.rejects(search({ 'email[in]': emails(70_000) }), { code: 'validation_error' })
    const many = Object.fromEntries(emails(51).map((_, i) => [`custom_fields.f${i}`, 'x']))
    await assert.rejects(search(many), { code: 'validation_error' })
  })
})
