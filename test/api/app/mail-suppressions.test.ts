import assert from 'node:assert/strict'
import { findSuppressed, suppress } from '../../../db/mails/suppressions.ts'
import { createMember, createOrganization } from '../../support/database.ts'
import { signIn, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('suppressed mail addresses', () => {
  const suite = withApi()
  afterEach(() => suite.db.system('mail_suppressions').delete())

  it('are listed in pages, newest first, only those of the organization', async () => {
    const { db, api } = suite
    const owner = await signIn(db, api)
    for (const address of ['One@example.com', 'two@example.com', 'three@example.com'])
      await suppress(db.system, api.organizationId, 'unsubscribed', [address])
    await suppress(db.system, await createOrganization(db), 'unsubscribed', ['theirs@example.com'])
    await suppress(db.system, undefined, 'bounced', ['gone@example.com'])
    const { body: first } = await owner('GET', '/mail-suppressions?limit=2')
    const { body: last } = await owner('GET', `/mail-suppressions?limit=2&cursor=${first.next_cursor}`)
    const all = [...first.data, ...last.data]
    assert.deepEqual(
      [first.total, all.map(({ address }) => address)],
      [3, ['three@example.com', 'two@example.com', 'one@example.com']],
    )
    assert.equal(all[0].reason, 'unsubscribed')
    const one = await owner('GET', '/mail-suppressions?address=ONE@example.com')
    assert.deepEqual([one.body.total, one.body.data[0].id], [1, all[2].id])
    assert.equal((await owner('GET', '/mail-suppressions?reason=added')).body.total, 0)
    assert.equal((await owner('GET', '/mail-suppressions?reason=bounced')).status, 422)
  })

  it('are added and removed, which the audit log records', async () => {
    const { db, api } = suite
    const owner = await signIn(db, api)
    const add = (address: string) => owner('POST', '/mail-suppressions', { address })
    const added = await add('Grace@Example.com')
    assert.deepEqual(
      [added.status, added.body.address, added.body.reason],
      [201, 'grace@example.com', 'added'],
    )
    const found = () => findSuppressed(db.system, api.organizationId, ['GRACE@example.com'])
    assert.equal((await found()).get('grace@example.com'), 'added')
    const again = await add('grace@example.com')
    assert.deepEqual([again.status, again.body.error.param], [409, 'address'])
    assert.equal((await add('no address')).status, 422)
    assert.equal((await owner('DELETE', `/mail-suppressions/${added.body.id}`)).body.deleted, true)
    assert.equal((await found()).size, 0)
    assert.equal((await owner('DELETE', `/mail-suppressions/${added.body.id}`)).status, 404)
    const { body } = await owner('GET', '/audit-log?action=mail_suppression.removed')
    assert.deepEqual(
      [body.data[0].target.name, body.data[0].details],
      ['grace@example.com', { reason: 'added' }],
    )
  })

  it('are neither seen nor changed by members and other organizations', async () => {
    const { db, api } = suite
    const owner = await signIn(db, api)
    const { body } = await owner('POST', '/mail-suppressions', { address: 'kept@example.com' })
    const member = await signInAs(db, api, await createMember(db, api.organizationId, 'Bob', 'member'))
    assert.equal((await member('GET', '/mail-suppressions')).status, 403)
    assert.equal((await member('DELETE', `/mail-suppressions/${body.id}`)).status, 403)
    const other = await createOrganization(db)
    await suppress(db.system, other, 'unsubscribed', ['theirs@example.com'])
    await suppress(db.system, undefined, 'bounced', ['gone@example.com'])
    const rows = await db.system('mail_suppressions').whereNot({ id: body.id })
    for (const { id } of rows) assert.equal((await owner('DELETE', `/mail-suppressions/${id}`)).status, 404)
    assert.equal((await db.system('mail_suppressions')).length, 3)
  })
})
