import assert from 'node:assert/strict'
import { keyLookup } from '../../../api/http/auth.ts'
import { createKey, revokeKey, rotateKey } from '../../../db/access/keys.ts'
import { generateKey } from '../../../db/model/access/key-format.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('key look-ups', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('share a statement between concurrent requests, for any keys', async () => {
    const made = await Promise.all([0, 1].map(async () => createKeyIn(await createOrganization(db))))
    let sent = 0
    db.system.on('query', () => sent++)
    const find = keyLookup(db.system)
    const keys = [...made.map(({ key }) => key), 'agx_nonsense', generateKey()]
    const found = await Promise.all([...keys, ...keys].map(find))
    const ids = [...made.map(({ id }) => id), undefined, undefined]
    assert.deepEqual(
      found.map((holder) => holder?.id),
      [...ids, ...ids],
    )
    assert.equal(sent, 1)
  })

  it('never find a key that was revoked before', async () => {
    const organization = await createOrganization(db)
    const { id, key } = await createKeyIn(organization)
    const find = keyLookup(db.system)
    const early = find(key)
    await db.tenant(organization, testActor, (tx) => revokeKey(tx, id))
    assert.equal(await find(key), undefined)
    await early
  })

  it('find a rotated key by its old secret during the overlap, and not after it', async () => {
    const organization = await createOrganization(db)
    const { id, key } = await createKeyIn(organization)
    const rotated = await db.tenant(organization, testActor, (tx) => rotateKey(tx, id, 1))
    const find = keyLookup(db.system)
    const found = await Promise.all([key, rotated.key].map(find))
    assert.deepEqual(
      found.map((holder) => holder?.id),
      [id, id],
    )
    // Even if the look-up finds the row by its new secret.
    await db
      .system('api_keys')
      .where({ id })
      .update({ previous_expires_at: new Date(Date.now() - 1_000) })
    assert.deepEqual(
      (await Promise.all([key, rotated.key].map(find))).map((holder) => holder?.id),
      [undefined, id],
    )
    assert.equal(await find(key), undefined)
  })

  const createKeyIn = (organization: string) =>
    db.tenant(organization, testActor, (tx) => createKey(tx, { name: 'Test', scopes: [] }))
})
