import assert from 'node:assert/strict'
import { MAX_USER_REQUESTS } from '../../../api/app/limit-requests.ts'
import { createMember, createOrganization } from '../../support/database.ts'
import { leaveOf } from '../../support/limits.ts'
import { type App, headersOf, signIn, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

const SPEC = 'name: Greet\nnodes: {greet: {type: set_fields, config: {fields: {text: Hello}}}}'

describe('/app/v1, the operations of /v1 for sessions', () => {
  const suite = withApi({ CORS_ORIGINS: '*' })
  let userId: string
  let app: App
  before(async () => {
    userId = await createMember(suite.db, suite.api.organizationId, 'Ada', 'admin')
    app = await signInAs(suite.db, suite.api, userId)
  })
  const ofKey = (method: string, path: string, body?: unknown) =>
    suite.api.request(method, path, body === undefined ? {} : { body })

  it('act as the user, in the organization of the session', async () => {
    const created = await app('POST', '/v1/objects/contacts', { first_name: 'Grace' })
    assert.equal(created.status, 201)
    const { id, created_by } = created.body
    assert.deepEqual(created_by, { type: 'user', id: userId })
    assert.equal((await app('PATCH', `/v1/objects/contacts/${id}`, { last_name: 'Hopper' })).status, 200)
    const { data } = (await ofKey('GET', `/v1/objects/contacts/${id}/history`)).body
    assert.deepEqual(
      data.map(({ actor }: { actor: object }) => actor),
      [created_by, created_by],
    )
    const { body } = await app('GET', '/v1/me')
    assert.deepEqual(
      [body.object, body.id, body.name, body.organization.id],
      ['user', userId, 'Ada', suite.api.organizationId],
    )
    assert.ok(body.scopes.includes('workflows:author'))

    const other = await createOrganization(suite.db, { name: 'Other' })
    await suite.db.system('memberships').insert({ organization_id: other, user_id: userId, role: 'member' })
    const elsewhere = await signInAs(suite.db, { ...suite.api, organizationId: other }, userId)
    assert.equal((await elsewhere('GET', `/v1/objects/contacts/${id}`)).status, 404)
    assert.equal((await elsewhere('GET', '/v1/objects/contacts')).body.total, 0)
    assert.equal((await elsewhere('POST', '/v1/workflows', { spec: SPEC })).status, 403)
  })

  it('are in the audit log with the user', async () => {
    const field = { name: 'tier', type: 'text' }
    assert.equal((await app('POST', '/v1/custom-fields/contacts', field)).status, 201)
    const { body } = await app('GET', '/audit-log?action=custom_field.created')
    assert.deepEqual([body.data[0].actor.type, body.data[0].actor.name], ['user', 'Ada'])
  })

  it('run workflows and take files', async () => {
    const { workflow_id } = (await app('POST', '/v1/workflows', { spec: SPEC })).body
    const { status, body } = await app('POST', `/v1/workflows/${workflow_id}/run`, { confirm: true })
    assert.deepEqual([status, body.status], [200, 'queued'], JSON.stringify(body))
    const run = await app('GET', `/v1/runs/${body.run_id}`)
    assert.deepEqual(run.body.trigger, { type: 'api', user: userId })

    const { id } = (await app('POST', '/v1/imports', { entity: 'contacts' })).body
    const headers = await headersOf(suite.db, suite.api, userId)
    const file = await suite.api.request('PUT', `/app/v1/imports/${id}/file`, {
      key: null,
      body: 'Email\r\nada@example.com\r\n',
      headers: { ...headers, 'Content-Type': 'text/csv' },
    })
    assert.deepEqual([file.status, file.body.file.rows], [200, 1], JSON.stringify(file.body))
    assert.deepEqual(file.body.created_by, { type: 'user', id: userId })
  })

  it('replay a stored answer to the same user only, with the scopes of the role at that time', async () => {
    const { db, api } = suite
    const send = async (headers: Record<string, string>, path = '/app/v1/objects/contacts') =>
      api.request('POST', path, {
        key: path.startsWith('/app') ? null : api.key,
        body: { first_name: 'Once' },
        headers: { ...headers, 'Idempotency-Key': 'once' },
      })
    const first = await send(await headersOf(db, api, userId))
    const again = await send(await headersOf(db, api, userId))
    assert.deepEqual([again.headers.get('idempotency-replayed'), again.body], ['true', first.body])
    const other = await createMember(db, api.organizationId, 'Bob', 'admin')
    for (const answer of [
      await send(await headersOf(db, api, other)),
      await send({}, '/v1/objects/contacts'),
    ]) {
      assert.deepEqual([answer.status, answer.headers.get('idempotency-replayed')], [201, null])
      assert.notEqual(answer.body.id, first.body.id)
    }

    const create = async () =>
      api.request('POST', '/app/v1/workflows', {
        key: null,
        body: { spec: SPEC },
        headers: { ...(await headersOf(db, api, other)), 'Idempotency-Key': 'author' },
      })
    assert.deepEqual([(await create()).status, (await create()).status], [201, 201])
    await app('PATCH', `/members/${other}`, { role: 'member' })
    assert.equal((await create()).status, 403)
  })

  it('end with the session and the membership, at the next request', async () => {
    const { db, api } = suite
    const id = await createMember(db, api.organizationId, 'Eve', 'member')
    const eve = await signInAs(db, api, id)
    assert.equal((await eve('GET', '/v1/objects/contacts')).status, 200)
    await app('DELETE', `/members/${id}`)
    assert.equal((await eve('GET', '/v1/objects/contacts')).status, 401)
    const bob = await signIn(db, api, 'member')
    await bob('DELETE', '/session')
    assert.equal((await bob('GET', '/v1/objects/contacts')).status, 401)
  })

  it('count in the limits of the user and, with the keys, of the organization', async () => {
    const { db, api } = suite
    const { organizationId } = api
    const bob = await createMember(db, organizationId, 'Bob', 'member')
    const get = await signInAs(db, api, bob)
    await leaveOf(db, { organizationId, subject: `user:${bob}`, limit: MAX_USER_REQUESTS }, 3)
    const statuses: number[] = []
    // The other operations of /app take from the same limit.
    for (const path of ['/v1/me', '/session', '/v1/me', '/v1/me', '/session'])
      statuses.push((await get('GET', path)).status)
    assert.deepEqual(statuses, [200, 200, 200, 429, 429])

    const limited = await createOrganization(db, { plan: 'free', limits: { requests_per_minute: 4 } })
    const eve = await createMember(db, limited, 'Eve', 'member')
    const session = await signInAs(db, { ...api, organizationId: limited }, eve)
    await leaveOf(db, { organizationId: limited, subject: 'organization', limit: 4 }, 4)
    const answers = []
    for (let i = 0; i < 6; i++) answers.push(await session('GET', '/v1/me'))
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers.get('x-ratelimit-limit')]),
      [...Array(4).fill([200, '4']), ...Array(2).fill([429, '4'])],
    )
    assert.match(answers[5]!.body.error.message, /^the organization exceeds 4 requests per minute$/)
    assert.equal((await session('GET', '/session')).status, 200)
  })

  it('are not open to other origins, and have the same answers for what does not exist', async () => {
    const { url } = suite.api
    const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'GET' }
    const preflight = await fetch(`${url}/app/v1/me`, { method: 'OPTIONS', headers })
    assert.equal(preflight.headers.get('access-control-allow-origin'), null)
    assert.equal((await fetch(`${url}/v1/me`, { method: 'OPTIONS', headers })).status, 204)
    assert.deepEqual((await app('GET', '/v1/nothing')).status, 404)
    assert.deepEqual((await app('DELETE', '/v1/me')).status, 405)
    const kinds = await app('GET', '/v1/objects/people')
    assert.deepEqual([kinds.status, kinds.body.error.hint.includes('contacts')], [404, true])
  })
})
