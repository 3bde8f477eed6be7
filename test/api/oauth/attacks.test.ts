import assert from 'node:assert/strict'
import { challengeOf } from '../../../db/model/access/oauth-format.ts'
import { formOf, type Visitor, visit, visitWith } from '../../support/console.ts'
import { createMember, createOrganization } from '../../support/database.ts'
import { rawMcp } from '../../support/mcp.ts'
import {
  type AuthorizationQuery,
  asking,
  authorizePath,
  CALLBACK,
  connected,
  consent,
  exchanging,
  forgetRegistrations,
  newVerifier,
  postForm,
  refreshing,
  register,
  registered,
  withCode,
} from '../../support/oauth.ts'
import { headersOf } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('attacks on OAuth', () => {
  const suite = withApi()
  let owner: Visitor
  let member: Visitor
  let memberId: string
  before(async () => {
    const { db, api } = suite
    owner = await visit(db, api)
    memberId = await createMember(db, api.organizationId, 'Grace', 'member')
    member = visitWith(api, await headersOf(db, api, memberId))
  })
  beforeEach(() => forgetRegistrations(suite.db))
  const call = (key: string, more: object = rawMcp('tools/list')) =>
    suite.api.request('POST', '/mcp', { key, ...more })
  const token = (fields: Record<string, string>) => postForm(suite.api, '/oauth/token', fields)
  const grantsOf = async (visitor: Visitor) =>
    (await suite.api.request('GET', '/app/grants', { key: null, headers: visitor.headers })).body.data

  describe('on the code', () => {
    it('gives nothing to whoever lacks the verifier, the client or the address, and the code stays good', async () => {
      const connection = await withCode(suite.api, owner)
      const given = exchanging(connection)
      for (const [name, value] of [
        ['code_verifier', newVerifier()],
        ['code_verifier', connection.verifier.slice(0, 42)],
        ['client_id', await registered(suite.api)],
        ['redirect_uri', 'http://127.0.0.1:33419/callback'],
        ['redirect_uri', `${CALLBACK}/`],
        ['code', `${connection.code.slice(0, -1)}x`],
      ] as const) {
        const { status, body } = await token({ ...given, [name]: value })
        assert.deepEqual([status, body.error], [400, 'invalid_grant'], name)
      }
      for (const name of Object.keys(given)) {
        const { [name as 'code']: _, ...rest } = given
        assert.equal((await token(rest)).body.error, 'invalid_request', name)
      }
      const wrong = await token({ ...given, resource: 'https://other.example.com/mcp' })
      assert.equal(wrong.body.error, 'invalid_target')
      assert.equal((await token(given)).status, 200)
    })

    it('works once: of two at the same time one gets tokens, and a repeat ends the grant', async () => {
      const given = exchanging(await withCode(suite.api, owner))
      const answers = await Promise.all([token(given), token(given), token(given)])
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400])
      const { access_token } = answers.find(({ status }) => status === 200)!.body
      assert.equal((await call(access_token)).status, 401, 'the others have revoked it')
      const last = await suite.db
        .system('audit_log')
        .where({ action: 'grant.revoked' })
        .orderBy('id', 'desc')
        .first()
      assert.deepEqual([last.actor_type, last.details], ['system', { reason: 'code_reused' }])
    })

    it('expires within a minute', async () => {
      const given = exchanging(await withCode(suite.api, owner))
      const row = await suite.db.system('oauth_grants').orderBy('id', 'desc').first()
      const seconds = (row.code_expires_at - row.created_at) / 1_000
      assert.ok(seconds > 50 && seconds <= 60, String(seconds))
      await suite.db.system('oauth_grants').where({ id: row.id }).update({ code_expires_at: row.created_at })
      assert.equal((await token(given)).body.error, 'invalid_grant')
    })
  })

  describe('on the address', () => {
    it('never leads to one that the client has not registered, nor anywhere by an error', async () => {
      const clientId = await registered(suite.api, 'Evil', 'https://evil.example.com/cb')
      const verifier = newVerifier()
      const good = asking(clientId, verifier, { redirect_uri: 'https://evil.example.com/cb' })
      assert.equal((await owner.get(authorizePath(good))).status, 200)
      for (const [name, value, status] of [
        ['redirect_uri', 'https://evil.example.com/cb/', 400],
        ['redirect_uri', 'https://evil.example.com/cb?x=1', 400],
        ['redirect_uri', 'https://evil.example.com:444/cb', 400],
        ['redirect_uri', 'https://evil.example.com.attacker.example/cb', 400],
        ['redirect_uri', 'javascript:alert(1)', 400],
        ['client_id', 'client_unknown', 400],
        ['client_id', 'https://127.0.0.1/client.json', 400],
        ['client_id', 'https://localhost', 400],
        ['resource', 'https://other.example.com/mcp', 400],
        ['response_type', 'token', 422],
        ['code_challenge_method', 'plain', 422],
        ['code_challenge', 'short', 422],
        ['scope', 'unknown:scope', 400],
      ] as const) {
        const page = await owner.get(authorizePath({ ...good, [name]: value }))
        assert.deepEqual([page.status, page.location], [status, null], `${name} ${value}`)
        assert.doesNotMatch(
          page.html,
          /<form[^>]*oauth|href="(?:https:\/\/evil|javascript)/,
          `${name} ${value}`,
        )
      }
      for (const name of [
        'response_type',
        'client_id',
        'redirect_uri',
        'code_challenge',
        'code_challenge_method',
      ]) {
        const { [name]: _, ...rest } = good as AuthorizationQuery
        const page = await owner.get(authorizePath(rest))
        assert.equal(page.status, 422, name)
        assert.match(page.html, new RegExp(name))
      }
    })

    it('ignores the port of a loopback address, and of no other', async () => {
      const clientId = await registered(suite.api, 'Local', 'http://localhost/callback')
      const to = (redirect_uri: string) =>
        owner.get(authorizePath(asking(clientId, newVerifier(), { redirect_uri })))
      assert.equal((await to('http://localhost:51234/callback')).status, 200)
      assert.equal((await to('http://127.0.0.1:51234/callback')).status, 400)
      assert.equal((await to('http://localhost:51234/other')).status, 400)
    })

    it('is refused at the registration if it could do harm', async () => {
      for (const uri of [
        'http://example.com/cb',
        'javascript:alert(1)',
        'data:text/html,x',
        'file:///etc/passwd',
        'ms-msdt:/id',
        'https://a.example/cb#fragment',
        'https://user:secret@a.example/cb',
        'https://a.example\\@b.example/cb',
        'https://a.example/\r\nSet-Cookie: a=b',
        '/relative',
        `https://a.example/${'x'.repeat(1_000)}`,
      ]) {
        const { status, body } = await register(suite.api, { client_name: 'Evil', redirect_uris: [uri] })
        assert.deepEqual([status, body.error], [400, 'invalid_redirect_uri'], uri)
        assert.match(body.error_description, /^redirect_uris\.0 /)
      }
      for (const [metadata, error] of [
        [{}, 'invalid_redirect_uri'],
        [{ redirect_uris: [] }, 'invalid_redirect_uri'],
        [{ redirect_uris: 'https://a.example' }, 'invalid_redirect_uri'],
        [{ redirect_uris: Array(21).fill(CALLBACK) }, 'invalid_redirect_uri'],
        [{ redirect_uris: [CALLBACK], grant_types: ['client_credentials'] }, 'invalid_client_metadata'],
        [{ redirect_uris: [CALLBACK], response_types: ['token'] }, 'invalid_client_metadata'],
        [{ redirect_uris: [CALLBACK], client_name: 7 }, 'invalid_client_metadata'],
        [[], 'invalid_client_metadata'],
        ['null', 'invalid_client_metadata'],
        ['{', 'invalid_request'],
        [{ redirect_uris: [CALLBACK], logo: 'x'.repeat(40_000) }, 'invalid_request'],
      ] as const)
        assert.equal(
          (await register(suite.api, metadata)).body.error,
          error,
          JSON.stringify(metadata).slice(0, 100),
        )
    })

    it('shows the name of a client as text of one line', async () => {
      const evil = `<script>alert(1)</script>\u202e\n\u0000${'x'.repeat(200)}`
      const clientId = await registered(suite.api, evil)
      const { html } = await owner.get(authorizePath(asking(clientId, newVerifier())))
      assert.match(html, /&lt;script>alert\(1\)&lt;\/script> x{74}</)
      assert.doesNotMatch(html, /<script>alert/)
    })
  })

  describe('on the consent', () => {
    it('needs a form of the person: no GET, no form of another site, no foreign or missing token', async () => {
      const clientId = await registered(suite.api)
      const path = authorizePath(asking(clientId, newVerifier()))
      const before = (await suite.db.system('oauth_grants').count())[0]!.count
      const fields = formOf((await owner.get(path)).html, '/oauth/authorize')
      const form = (headers: Record<string, string>, given: object = fields) =>
        fetch(`${suite.api.url}/oauth/authorize`, {
          method: 'POST',
          redirect: 'manual',
          headers: { Cookie: owner.headers.Cookie!, ...headers },
          body: new URLSearchParams(
            Object.entries(given).flatMap(([name, value]) =>
              [value].flat().map((one: string) => [name, one]),
            ),
          ),
        })
      assert.equal(
        (await owner.get(`${path}&scopes=contacts:read&csrf_token=${fields.csrf_token}`)).status,
        200,
      )
      for (const headers of [
        { 'Sec-Fetch-Site': 'cross-site' },
        { 'Sec-Fetch-Site': 'same-site' },
        { Origin: 'https://evil.example.com' },
      ])
        assert.equal((await form(headers as Record<string, string>)).status, 403)
      for (const csrf_token of ['', 'x', member.headers['X-CSRF-Token']!]) {
        const answer = await form({ 'Sec-Fetch-Site': 'same-origin' }, { ...fields, csrf_token })
        assert.equal(answer.status, 303)
        assert.match(answer.headers.get('location')!, /^\/oauth\/authorize\?/, 'the page is shown again')
      }
      const signedOut = await visitWith(suite.api).post('/oauth/authorize', fields)
      assert.match(signedOut.location!, /^\/sign-in\?next=%2Foauth%2Fauthorize/)
      assert.equal((await suite.db.system('oauth_grants').count())[0]!.count, before)
    })

    it('cannot be stretched: to scopes that were not asked for, beyond the role, or unknown', async () => {
      const clientId = await registered(suite.api)
      const page = await member.get(
        authorizePath(asking(clientId, newVerifier(), { scope: 'contacts:read' })),
      )
      const fields = formOf(page.html, '/oauth/authorize')
      for (const scopes of [['contacts:write'], ['webhooks:write'], ['everything'], []]) {
        const answer = await member.post('/oauth/authorize', { ...fields, scopes })
        assert.deepEqual([answer.status, answer.location], [422, null], String(scopes))
      }
      const wide = formOf(
        (await member.get(authorizePath(asking(clientId, newVerifier())))).html,
        '/oauth/authorize',
      )
      assert.equal(
        (await member.post('/oauth/authorize', { ...wide, scopes: ['workflows:author'] })).status,
        422,
      )
    })

    it('makes one grant of a double click', async () => {
      const path = authorizePath(asking(await registered(suite.api), newVerifier()))
      const fields = formOf((await owner.get(path)).html, '/oauth/authorize')
      const answers = await Promise.all([1, 2].map(() => owner.post('/oauth/authorize', fields)))
      assert.equal(answers[0]!.location, answers[1]!.location)
      assert.match(answers[0]!.location!, /[?&]code=agxc_/)
    })
  })

  describe('on the tokens', () => {
    it('of a refresh: a stolen one ends the grant for both', async () => {
      const first = await connected(suite.api, owner)
      const second = (await refreshing(suite.api, first)).body
      assert.equal((await call(first.access)).status, 200, 'until it expires')
      assert.equal((await call(second.access_token)).status, 200)
      const stolen = await refreshing(suite.api, first)
      assert.deepEqual([stolen.status, stolen.body.error], [400, 'invalid_grant'])
      for (const access of [first.access, second.access_token]) assert.equal((await call(access)).status, 401)
      const rest = await refreshing(suite.api, { clientId: first.clientId, refresh: second.refresh_token })
      assert.equal(rest.body.error, 'invalid_grant')
      const last = await suite.db
        .system('audit_log')
        .where({ action: 'grant.revoked' })
        .orderBy('id', 'desc')
        .first()
      assert.deepEqual(last.details, { reason: 'refresh_token_reused' })
    })

    it('lets a client repeat a refresh whose answer was lost, and ends what that answer had', async () => {
      const first = await connected(suite.api, owner)
      const lost = (await refreshing(suite.api, first)).body
      const again = (await refreshing(suite.api, first)).body
      assert.ok(again.access_token)
      assert.equal((await call(lost.access_token)).status, 401)
      assert.equal((await call(again.access_token)).status, 200)
      const thief = await refreshing(suite.api, { clientId: first.clientId, refresh: lost.refresh_token })
      assert.equal(thief.body.error, 'invalid_grant')
      assert.equal((await call(again.access_token)).status, 401, 'somebody had the lost answer')
    })

    it('repeats no refresh after a minute', async () => {
      const first = await connected(suite.api, owner)
      const second = (await refreshing(suite.api, first)).body
      await suite.db
        .system('oauth_tokens')
        .whereNotNull('refreshed_at')
        .update({ refreshed_at: new Date(Date.now() - 61_000) })
      assert.equal((await refreshing(suite.api, first)).body.error, 'invalid_grant')
      assert.equal((await call(second.access_token)).status, 401)
    })

    it('of a refresh stay known: a thief who refreshes on and on is found out by the first one', async () => {
      const first = await connected(suite.api, owner)
      const { clientId } = first
      let last = first as { access: string; refresh: string }
      for (let i = 0; i < 60; i++) {
        const { status, body } = await refreshing(suite.api, { clientId, refresh: last.refresh })
        assert.equal(status, 200)
        last = { access: body.access_token, refresh: body.refresh_token }
      }
      assert.equal((await call(last.access)).status, 200)
      assert.equal((await refreshing(suite.api, first)).body.error, 'invalid_grant')
      assert.equal((await call(last.access)).status, 401)
    })

    it('of a refresh stay known for as long as what it made, and end the grant even later', async () => {
      const first = await connected(suite.api, owner)
      const tokens = suite.db.system('oauth_tokens')
      const soon = new Date(Date.now() + 60_000)
      await tokens.clone().whereNull('refreshed_at').update({ expires_at: soon })
      const second = (await refreshing(suite.api, first)).body
      assert.equal((await call(second.access_token)).status, 200)
      const made = await tokens.clone().orderBy('id', 'desc').first()
      const used = await tokens.clone().where({ id: made.previous }).first()
      assert.deepEqual(used.expires_at, made.expires_at)
      await tokens
        .clone()
        .where({ id: used.id })
        .update({ expires_at: new Date(Date.now() - 1) })
      assert.equal((await refreshing(suite.api, first)).body.error, 'invalid_grant')
      assert.equal((await call(second.access_token)).status, 401)
    })

    it('are refreshed at most 200 times a day, which uses up no token', async () => {
      const first = await connected(suite.api, owner)
      const second = (await refreshing(suite.api, first)).body
      const next = { clientId: first.clientId, refresh: second.refresh_token }
      const windows = suite.db.system('limit_windows').whereLike('subject', 'refreshes of grant %')
      assert.ok((await windows.clone().update({ used: 200 })) > 0)
      const { status, headers, body } = await refreshing(suite.api, next)
      assert.deepEqual([status, body.error], [429, 'temporarily_unavailable'])
      assert.ok(Number(headers.get('retry-after')) > 0)
      await windows.clone().delete()
      assert.equal((await refreshing(suite.api, next)).status, 200)
    })

    it('keep their scopes, client and resource in a refresh', async () => {
      const first = await connected(suite.api, owner, ['contacts:write'])
      for (const [more, error] of [
        [{ scope: 'contacts:write deals:read' }, 'invalid_scope'],
        [{ scope: 'nothing:read' }, 'invalid_scope'],
        [{ resource: 'https://other.example.com/mcp' }, 'invalid_target'],
        [{ client_id: await registered(suite.api) }, 'invalid_grant'],
        [{ client_secret: 'x' }, 'invalid_client'],
        [{ refresh_token: first.access }, 'invalid_grant'],
        [{ grant_type: 'password' }, 'unsupported_grant_type'],
      ] as [Record<string, string>, string][])
        assert.equal((await refreshing(suite.api, first, more)).body.error, error, JSON.stringify(more))
      const narrow = (await refreshing(suite.api, first, { scope: 'contacts:read' })).body
      assert.equal(narrow.scope, 'contacts:read')
      const write = rawMcp('tools/call', {
        name: 'create_record',
        arguments: { kind: 'contacts', fields: {} },
      })
      assert.match(
        JSON.stringify((await call(narrow.access_token, write)).body),
        /lacks the scope contacts:write|no tool/,
      )
    })

    it('are for one address: a token of another resource is refused', async () => {
      const { access } = await connected(suite.api, owner)
      await suite.db.system('oauth_grants').update({ resource: 'https://other.example.com/mcp' })
      const { status, body } = await call(access)
      assert.deepEqual([status, body.error.message], [401, 'the access token is not accepted'])
    })

    it('expire after an hour', async () => {
      const { access } = await connected(suite.api, owner)
      await suite.db.system('oauth_tokens').update({ access_expires_at: new Date(Date.now() - 1) })
      assert.equal((await call(access)).status, 401)
    })

    it('are accepted nowhere else, in no other form, and no key passes as one', async () => {
      const { access, refresh } = await connected(suite.api, owner)
      for (const path of ['/v1/me', '/app/v1/me', '/app/session', '/app/grants'])
        assert.equal((await suite.api.request('GET', path, { key: access })).status, 401, path)
      assert.equal((await call(refresh)).status, 401)
      assert.equal(
        (await suite.api.request('POST', `/mcp?access_token=${access}`, { key: null })).status,
        401,
      )
    })

    it('have what the role has now: less at once if it is lowered, nothing if the member is gone', async () => {
      const { db, api } = suite
      const adminId = await createMember(db, api.organizationId, 'Bob', 'admin')
      const admin = visitWith(api, await headersOf(db, api, adminId))
      const tokens = await connected(api, admin, ['workflows:author', 'contacts:read'])
      const names = async (key: string): Promise<string[]> =>
        (await call(key)).body.result.tools.map(({ name }: { name: string }) => name)
      assert.ok((await names(tokens.access)).includes('create_workflow'))
      const as = (method: string, path: string, body?: object) =>
        api.request(method, path, { key: null, headers: owner.headers, ...(body && { body }) })
      await as('PATCH', `/app/members/${adminId}`, { role: 'member' })
      assert.ok(!(await names(tokens.access)).includes('create_workflow'))
      const refreshed = (await refreshing(api, tokens)).body
      assert.equal(refreshed.scope, 'contacts:read')
      assert.equal((await as('DELETE', `/app/members/${adminId}`)).status, 200)
      assert.equal((await call(tokens.access)).status, 401)
      assert.equal((await call(refreshed.access_token)).status, 401)
      const again = await refreshing(api, { clientId: tokens.clientId, refresh: refreshed.refresh_token })
      assert.equal(again.body.error, 'invalid_grant')
      assert.equal((await db.system('oauth_grants').where({ user_id: adminId })).length, 0)
    })

    it('show nothing of another organization, nor are they ended by it', async () => {
      const { db, api } = suite
      const tokens = await connected(api, owner, ['contacts:read'])
      const { body } = await api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
      const organizationId = await createOrganization(db)
      const strangerId = await createMember(db, organizationId, 'Eve', 'owner')
      const stranger = visitWith(api, await headersOf(db, { ...api, organizationId }, strangerId))
      const other = await connected(api, stranger, ['contacts:read'])
      const get = (key: string) =>
        call(key, rawMcp('tools/call', { name: 'get_record', arguments: { kind: 'contacts', id: body.id } }))
      assert.equal((await get(tokens.access)).body.result.structuredContent.id, body.id)
      assert.equal((await get(other.access)).body.result.structuredContent.error.type, 'not_found')
      const [own] = await grantsOf(owner)
      assert.ok(!(await grantsOf(stranger)).some(({ id }: { id: string }) => id === own.id))
      const ended = await api.request('DELETE', `/app/grants/${own.id}`, {
        key: null,
        headers: stranger.headers,
      })
      assert.equal(ended.status, 404)
      const entries = await api.request('GET', '/app/audit-log?action=grant.created', {
        key: null,
        headers: stranger.headers,
      })
      assert.equal(entries.body.data.length, 1)
    })

    it('are stored as hashes only, and a state or code shows in no log', async () => {
      const verifier = newVerifier()
      const clientId = await registered(suite.api)
      const back = await consent(owner, authorizePath(asking(clientId, verifier)))
      const row = await suite.db.system('oauth_grants').orderBy('id', 'desc').first()
      assert.equal(row.code_challenge, challengeOf(verifier))
      assert.ok(!JSON.stringify(row).includes(back.searchParams.get('code')!))
    })
  })

  it('malformed requests get the errors of OAuth', async () => {
    const post = (path: string, type: string, body: string | Uint8Array<ArrayBuffer>) =>
      fetch(suite.api.url + path, { method: 'POST', headers: { 'Content-Type': type }, body })
    const FORM = 'application/x-www-form-urlencoded'
    for (const [path, type, body] of [
      ['/oauth/token', 'application/json', '{}'],
      ['/oauth/token', FORM, ''],
      ['/oauth/token', FORM, 'grant_type=refresh_token&grant_type=refresh_token'],
      ['/oauth/token', FORM, 'grant_type=%ff'],
      ['/oauth/token', FORM, new Uint8Array([0xff])],
      ['/oauth/token', FORM, `grant_type=${'x'.repeat(40_000)}`],
      ['/oauth/token', FORM, 'grant_type=refresh_token&client_id=%00&refresh_token=%00'],
      ['/oauth/revoke', FORM, 'token=x'],
      ['/oauth/register', 'text/plain', '{}'],
    ] as const) {
      const answer = await post(path, type, body)
      const { error, error_description } = (await answer.json()) as Record<string, string>
      assert.ok(answer.status >= 400 && answer.status < 500, `${path} ${body}: ${answer.status}`)
      assert.match(error!, /^invalid_(?:request|grant)$/, `${path} ${body}`)
      assert.ok(error_description)
    }
    for (const path of ['/oauth/token', '/oauth/register', '/oauth/revoke'])
      assert.equal((await fetch(suite.api.url + path)).status, 405, path)
    assert.equal((await fetch(`${suite.api.url}/oauth/none`)).status, 404)
  })
})

describe('floods of registrations', () => {
  const suite = withApi()
  beforeEach(() => forgetRegistrations(suite.db))
  const clients = () => suite.db.system('oauth_clients')

  it('from one address are refused: 20 in an hour, 100 in a day', async () => {
    for (let i = 0; i < 20; i++) assert.equal((await register(suite.api)).status, 201)
    const { status, headers, body } = await register(suite.api)
    assert.deepEqual([status, body.error], [429, 'temporarily_unavailable'])
    assert.ok(Number(headers.get('retry-after')) > 0)
    await forgetRegistrations(suite.db)
    assert.equal((await register(suite.api)).status, 201)
    const daily = suite.db.system('limit_windows').whereLike('subject', 'oauth register % in a day')
    assert.equal(await daily.update({ used: 100 }), 1)
    assert.equal((await register(suite.api)).status, 429)
  })

  it('store no long lists of addresses', async () => {
    const uris = (count: number) =>
      Array.from({ length: count }, (_, i) => `https://example.com/${i}${'x'.repeat(900)}`)
    assert.equal((await register(suite.api, { redirect_uris: uris(4) })).status, 201)
    const { status, body } = await register(suite.api, { redirect_uris: uris(5) })
    assert.deepEqual([status, body.error], [400, 'invalid_redirect_uri'])
    assert.match(body.error_description, /redirect_uris: .*4096 characters/)
  })

  it('are forgotten after a day without a grant', async () => {
    const unused = await registered(suite.api)
    const { clientId } = await withCode(suite.api, await visit(suite.db, suite.api))
    const daysOf = async (id: string) => {
      const { expires_at } = await clients().where({ id }).first()
      return Math.round((expires_at.getTime() - Date.now()) / 86_400_000)
    }
    assert.deepEqual([await daysOf(unused), await daysOf(clientId)], [1, 365])
  })

  it('shut nobody out: above 10,000 without a grant, the oldest of these are forgotten', async () => {
    const { clientId } = await withCode(suite.api, await visit(suite.db, suite.api))
    const oldest = await registered(suite.api)
    await suite.db.system.raw(
      `insert into oauth_clients (id, name, redirect_uris, expires_at)
       select 'flood' || n, 'Flood', '{}', now() + interval '1 day' from generate_series(1, 10000) n`,
    )
    const newest = await registered(suite.api)
    const soon = new Date(Date.now() + 2 * 86_400_000)
    assert.equal((await clients().where('expires_at', '<', soon)).length, 10_000)
    const found = await clients().whereIn('id', [clientId, oldest, newest]).pluck('id')
    assert.deepEqual(found.sort(), [clientId, newest].sort())
  })
})
