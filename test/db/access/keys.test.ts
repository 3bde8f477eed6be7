import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createKey, findKeyHolders, noteKeyUse } from '../../../db/access/keys.ts'
import { generateKey, isKey } from '../../../db/model/access/key-format.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('API keys', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('reject typos by their checksum', () => {
    const key = generateKey()
    assert.ok(isKey(key))
    fc.assert(
      fc.property(fc.integer({ min: 4, max: key.length - 1 }), fc.constantFrom(...'09AZaz'), (at, letter) => {
        const typo = key.slice(0, at) + letter + key.slice(at + 1)
        assert.equal(isKey(typo), typo === key)
      }),
    )
    fc.assert(fc.property(fc.string(), (text) => !isKey(text)))
  })

  it('are unique and use every base62 character', () => {
    const keys = Array.from({ length: 500 }, generateKey)
    assert.equal(new Set(keys).size, keys.length)
    assert.equal(new Set(keys.join('').slice(0, 20_000)).size, 62 + 1)
  })

  it('can be created with a given secret of the right form', async () => {
    const organizationId = await createOrganization(db)
    const make = (secret: string) =>
      db.tenant(organizationId, testActor, (tx) =>
        createKey(tx, { name: 'mine', scopes: ['contacts:read'], secret }),
      )
    const secret = generateKey()
    assert.equal((await make(secret)).key, secret)
    await assert.rejects(make('agx_demo'), /checksum/)
  })

  it('record their use at most once a minute', async () => {
    const organizationId = await createOrganization(db)
    const { key } = await db.tenant(organizationId, testActor, (tx) =>
      createKey(tx, { name: 'used', scopes: ['contacts:read'] }),
    )
    const find = async () => (await findKeyHolders(db.system, [key])).get(key)!
    const holder = await find()
    assert.equal(holder.note_use, true)
    await noteKeyUse(db.system, holder)
    assert.equal((await find()).note_use, false)
  })
})
