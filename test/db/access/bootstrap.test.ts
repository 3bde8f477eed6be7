import { deepEqual, equal, match } from 'node:assert/strict'
import { bootstrap } from '../../../db/access/bootstrap.ts'
import { authenticate } from '../../../db/access/users.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

describe('the first start', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('creates an organization with an owner and a key, once', async () => {
    const created = (await bootstrap({ url: db.url }, { BOOTSTRAP_EMAIL: 'ada@example.com' }))!
    match(created.apiKey, /^agx_/)
    const user = await authenticate(db.system, created.email, created.password)
    deepEqual(await db.system('memberships').select('user_id', 'role'), [
      { user_id: user?.id, role: 'owner' },
    ])
    equal((await db.system('api_keys')).length, 1)
    equal(await bootstrap({ url: db.url }, {}), undefined)
  })
})
