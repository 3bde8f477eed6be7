import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type Koa from 'koa'
import { answerPresumed } from '../../../api/http/presumed.ts'
import type { Caller } from '../../../api/http/scopes.ts'
import { revokeKey, updateKey } from '../../../db/access/keys.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { createKey } from '../../support/api.ts'
import { testActor } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

describe('a read that begins before its caller is looked up', () => {
  const suite = withApi({ TRUSTED_PROXIES: '1' })
  const inOrganization = <T>(work: (tx: Tenant) => Promise<T>) =>
    suite.db.tenant(suite.api.organizationId, testActor, work)

  async function keyInUse() {
    const { body: contact } = await suite.api.request('POST', '/v1/objects/contacts', {
      body: { first_name: 'Ada' },
    })
    const { id, key } = await createKey(suite.db, suite.api.organizationId)
    const get = () =>
      suite.api.request('GET', `/v1/objects/contacts/${contact.id}`, {
        key,
        headers: { 'X-Forwarded-For': '192.0.2.1' },
      })
    const first = await get()
    assert.equal(first.status, 200)
    assert.ok(first.headers.get('etag'))
    return { id, get }
  }

  it('ends with 401, and shows nothing, once the key is revoked', async () => {
    const { id, get } = await keyInUse()
    await inOrganization((tx) => revokeKey(tx, id))
    const { status, headers, body } = await get()
    assert.equal(status, 401)
    assert.deepEqual(Object.keys(body), ['error'])
    const shown = [...headers.keys()].filter((name) => /etag|ratelimit/.test(name))
    assert.deepEqual(shown, [])
  })

  it('ends with 401 once its address is not allowed', async () => {
    const { id, get } = await keyInUse()
    await inOrganization((tx) => updateKey(tx, id, { ip_allowlist: ['198.51.100.0/24'] }))
    assert.equal((await get()).status, 401)
  })

  it('ends with 403 once the key lacks the scope, and with 200 once it has it again', async () => {
    const { id, get } = await keyInUse()
    await inOrganization((tx) => updateKey(tx, id, { scopes: ['companies:read'] }))
    const refused = await get()
    assert.equal(refused.status, 403)
    assert.equal(refused.headers.get('etag'), null)
    await inOrganization((tx) => updateKey(tx, id, { scopes: ['contacts:read'] }))
    const { status, headers } = await get()
    assert.equal(status, 200)
    assert.ok(headers.get('etag'))
    assert.ok(headers.get('x-ratelimit-remaining'))
  })

  it('is answered as the caller is now', async () => {
    const { id, key } = await createKey(suite.db, suite.api.organizationId)
    const me = async () => (await suite.api.request('GET', '/v1/me', { key })).body
    await me()
    await inOrganization((tx) => updateKey(tx, id, { name: 'renamed' }))
    assert.match(JSON.stringify(await me()), /renamed/)
  })

  it('is answered again if the statement that confirms the caller fails', async () => {
    const ctx = { res: new ServerResponse(new IncomingMessage(new Socket())), state: {} } as Koa.Context
    const caller = { id: 'a key' } as Caller
    const failing = () => Promise.reject(new Error('canceling statement due to statement timeout'))
    const answers: string[] = []
    await answerPresumed(
      ctx,
      { caller, isConfirmed: failing },
      async () => caller,
      async (_caller, confirm) => {
        confirm?.(failing)
        answers.push(confirm ? 'current transaction is aborted' : 'the record')
        if (confirm) throw new Error('current transaction is aborted')
      },
    )
    assert.equal(answers.at(-1), 'the record')
  })
})
