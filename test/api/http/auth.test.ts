import assert from 'node:assert/strict'
import { KeyLookups } from '../../../api/http/key-lookups.ts'
import { createKey, revokeKey } from '../../../db/access/keys.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('look-ups of keys', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('share what is asked for at once, and never see a key after it was revoked', async () => {
    const organization = await createOrganization(db)
    const tenant = <T>(work: Parameters<typeof db.tenant<T>>[2]) => db.tenant(organization, testActor, work)
    const { id, key } = await tenant((tx) => createKey(tx, { name: 'Test', scopes: [] }))
    let sent = 0
    db.system.on('query', () => sent++)
    const lookups = new KeyLookups(db.system)
    const many = await Promise.all(Array.from({ length: 50 }, () => lookups.find(key)))
    assert.deepEqual(new Set(many.map((holder) => holder?.id)), new Set([id]))
    assert.equal(sent, 2)

    const early = [lookups.find(key), lookups.find(key)]
    await tenant((tx) => revokeKey(tx, id))
    assert.equal(await lookups.find(key), undefined)
    await Promise.all(early)
    assert.equal(await lookups.find('agx_nonsense'), undefined)
  })
})
