import assert from 'node:assert/strict'
import { randomBytes, scryptSync } from 'node:crypto'
import { authenticate, createUser, requireSamePassword, signIn } from '../../../db/access/users.ts'
import { AppError } from '../../../db/model/errors.ts'
import { checkPassword, hashPassword } from '../../../db/process/passwords.ts'
import { createOrganization, createTestDatabase } from '../../support/database.ts'

const PASSWORD = 'correct horse battery staple'
const CURRENT = /^\$argon2id\$v=19\$m=65536,t=2,p=1\$/

/** A hash in the format of earlier versions. */
function scryptHash(password: string): string {
  const [N, r, p] = [2 ** 14, 8, 1]
  const salt = randomBytes(16)
  const hash = scryptSync(password, salt, 32, { N, r, p })
  return ['scrypt', N, r, p, salt.toString('base64'), hash.toString('base64')].join('$')
}

describe('passwords', () => {
  it('are hashed with argon2id and a salt of their own', async () => {
    const [one, two] = [await hashPassword(PASSWORD), await hashPassword(PASSWORD)]
    assert.match(one, CURRENT)
    assert.notEqual(one, two)
    assert.deepEqual(await checkPassword(PASSWORD, one), { right: true })
    assert.deepEqual(await checkPassword(`${PASSWORD}r`, one), { right: false })
  })

  it('match however a keyboard composes their characters', async () => {
    const stored = await hashPassword('Zürich am Morgen')
    assert.equal((await checkPassword('Zu\u0308rich am Morgen', stored)).right, true)
  })

  it('match no user without a password, and no unknown user', async () => {
    for (const stored of [undefined, 'none', ''])
      for (const password of ['', 'none', PASSWORD])
        assert.deepEqual(await checkPassword(password, stored), { right: false })
  })

  it('are refused at once while too many are being hashed', async () => {
    const answers = await Promise.allSettled(Array.from({ length: 30 }, () => hashPassword(PASSWORD)))
    const refused = answers.filter(({ status }) => status === 'rejected')
    assert.equal(refused.length, 30 - 12)
    for (const { reason } of refused as PromiseRejectedResult[])
      assert.deepEqual([reason instanceof AppError, reason.type], [true, 'unavailable'])
  })

  it('hashed by scrypt still work, and are hashed again at sign-in', async () => {
    const db = await createTestDatabase()
    const organizationId = await createOrganization(db)
    const ada = { email: 'ada@example.com', name: 'Ada', password: 'replaced below' }
    const id = await createUser(db.system, { ...ada, organizationId, role: 'owner' })
    const hash = async () => (await db.system('users').where({ id }).first('password_hash')).password_hash
    const old = scryptHash(PASSWORD)
    await db.system('users').where({ id }).update({ password_hash: old })
    const attempt = (password: string) =>
      signIn(db.system, { email: ada.email, password }, { ip: null, userAgent: null })

    assert.equal(await attempt('wrong'), undefined)
    assert.equal(await hash(), old)
    assert.ok(await attempt(PASSWORD))
    const replaced = await hash()
    assert.match(replaced, CURRENT)
    assert.ok(await attempt(PASSWORD))
    assert.equal(await hash(), replaced)
    await db.drop()
  })

  it('that change while they are checked open no session', async () => {
    const db = await createTestDatabase()
    const organizationId = await createOrganization(db)
    const ada = { email: 'ada@example.com', name: 'Ada', password: PASSWORD }
    const id = await createUser(db.system, { ...ada, organizationId, role: 'owner' })
    const user = (await authenticate(db.system, ada.email, PASSWORD))!
    assert.equal(user.id, id)
    await db.system.transaction((trx) => requireSamePassword(trx, user))
    await db.system('users').where({ id }).update({ password_hash: 'another' })
    const late = db.system.transaction((trx) => requireSamePassword(trx, user))
    await assert.rejects(late, { type: 'unauthorized' })
    await db.drop()
  })
})
