import assert from 'node:assert/strict'
import { openSecrets, putSecret } from '../../../db/access/secrets.ts'
import { SECRETS } from '../../../workflows/shared/limits.ts'
import { createOrganization, testActor } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'
import { type App, signIn } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

const VALUE = planted('tok_hunter2-hunter2')

describe('secrets', () => {
  const suite = withApi()
  let admin: App
  before(async () => {
    admin = await signIn(suite.db, suite.api, 'admin')
  })
  afterEach(() => suite.db.system('secrets').delete())

  const put = (name: string, value: unknown) => admin('PUT', `/secrets/${name}`, { value })
  const read = (organizationId = suite.api.organizationId) =>
    suite.db.tenant(organizationId, testActor, (tx) => openSecrets(tx, suite.api.secretsKey))

  it('are created, replaced, listed by name and deleted, and no answer has a value', async () => {
    const created = await put('STRIPE_KEY', 'first-value')
    assert.equal(created.status, 200)
    await put('acme', VALUE)
    const replaced = await put('STRIPE_KEY', VALUE)
    assert.equal(replaced.body.created_at, created.body.created_at)
    assert.ok(replaced.body.updated_at >= created.body.updated_at)
    assert.deepEqual(Object.keys(replaced.body).sort(), ['created_at', 'name', 'object', 'updated_at'])

    const { body } = await admin('GET', '/secrets?limit=1')
    assert.deepEqual([body.total, body.has_more, body.data[0].name], [2, true, 'STRIPE_KEY'])
    const next = await admin('GET', `/secrets?limit=1&cursor=${body.next_cursor}`)
    assert.deepEqual([next.body.has_more, next.body.data[0].name], [false, 'acme'])
    assert.deepEqual(Object.fromEntries(await read()), { STRIPE_KEY: VALUE, acme: VALUE })

    const deleted = await admin('DELETE', '/secrets/acme')
    assert.deepEqual([deleted.status, deleted.body.deleted], [200, true])
    assert.equal((await admin('DELETE', '/secrets/acme')).status, 404)
    for (const { body } of [created, replaced, next]) assert.doesNotMatch(JSON.stringify(body), /hunter2/)
  })

  it('are sealed for their organization and name', async () => {
    await put('a', VALUE)
    const row = await suite.db.system('secrets').first()
    assert.match(row.sealed, /^v1\./)
    const other = await createOrganization(suite.db)
    await suite.db.system('secrets').insert([
      { ...row, name: 'b' },
      { ...row, organization_id: other },
    ])
    assert.deepEqual(Object.fromEntries(await read()), { a: VALUE, b: undefined })
    assert.deepEqual(Object.fromEntries(await read(other)), { a: undefined })
  })

  it('need a role: members see none', async () => {
    const member = await signIn(suite.db, suite.api, 'member')
    for (const [method, path] of [
      ['GET', '/secrets'],
      ['PUT', '/secrets/a'],
      ['DELETE', '/secrets/a'],
    ] as const) {
      const body = method === 'PUT' ? { value: VALUE } : undefined
      assert.equal((await member(method, path, body)).status, 403, method)
      const withKey = await suite.api.request(method, `/app${path}`, body ? { body } : {})
      assert.equal(withKey.status, 401, method)
    }
  })

  it('are refused with all errors, none of which echoes the value', async () => {
    const refused = await put('9 lives', 'hunter2')
    assert.equal(refused.status, 422)
    assert.deepEqual(
      refused.body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')),
      ['body.value', 'path.name'],
    )
    assert.match(refused.body.error.hint, /env/)
    for (const body of [
      { value: `hunter2${'x'.repeat(SECRETS.characters)}` },
      { value: '  hunter2  ' },
      { value: ['hunter2'] },
      { value: VALUE, other: 'hunter2' },
      { Value: VALUE },
      'hunter2',
      '"hunter2"',
      '{"value": "hunter2',
    ]) {
      const answer = await admin('PUT', '/secrets/a', body)
      assert.ok([400, 422].includes(answer.status), JSON.stringify(body))
      assert.doesNotMatch(JSON.stringify(answer.body), /hunter2/)
    }
    assert.deepEqual(await read(), new Map())
    for (const name of ['__proto__', 'a-b', 'x'.repeat(65), '%20'])
      assert.equal((await put(name, VALUE)).status, 422, name)
  })

  it('are limited in size together', async () => {
    const value = 'v'.repeat(SECRETS.characters)
    const most = SECRETS.total / SECRETS.characters
    for (let i = 0; i < most - 1; i++) assert.equal((await put(`big${i}`, value)).status, 200)
    const refused = await put('more', value)
    assert.equal(refused.status, 409)
    assert.match(refused.body.error.message, /more than 65536 bytes together/)
    assert.equal((await put('big0', value.replace('v', 'w'))).status, 200)
    for (let i = 0; i < most - 1; i++) await admin('DELETE', `/secrets/big${i}`)
  })

  it('are limited in number, also when they are created at once; replacing one still works', async () => {
    const { organizationId, secretsKey } = suite.api
    for (let i = 0; i < SECRETS.count - 1; i++)
      await suite.db.tenant(organizationId, testActor, (tx) => putSecret(tx, secretsKey, `s${i}`, VALUE))
    const answers = await Promise.all(['x', 'y', 'z'].map((name) => put(name, VALUE)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409])
    assert.equal((await put('s1', VALUE)).status, 200)
  })
})
