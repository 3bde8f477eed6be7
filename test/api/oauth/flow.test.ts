import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { setPassword } from '../../../db/access/password-resets.ts'
import { startApi } from '../../support/api.ts'
import { formOf, textOf, type Visitor, visit, visitWith } from '../../support/console.ts'
import { rawMcp } from '../../support/mcp.ts'
import {
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
  registered,
  withCode,
} from '../../support/oauth.ts'
import { withApi } from '../../support/with-api.ts'

type Provider = OAuthClientProvider & { opened: URL | undefined }

/** What an assistant keeps of a connection. */
function providerOf(more: Partial<OAuthClientProvider> = {}): Provider {
  const kept: Record<string, unknown> = {}
  return {
    opened: undefined,
    redirectUrl: CALLBACK,
    clientMetadata: {
      client_name: 'Claude',
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
    },
    state: () => 'the state',
    clientInformation: () => kept.client as never,
    saveClientInformation: (client) => {
      kept.client = client
    },
    tokens: () => kept.tokens as never,
    saveTokens: (tokens) => {
      kept.tokens = tokens
    },
    saveCodeVerifier: (verifier) => {
      kept.verifier = verifier
    },
    codeVerifier: () => kept.verifier as string,
    saveDiscoveryState: (state: unknown) => {
      kept.discovery = state
    },
    discoveryState: () => kept.discovery as never,
    redirectToAuthorization(url) {
      this.opened = url
    },
    ...more,
  } as Provider
}

const pem = (name: string) => readFileSync(new URL(`../../fixtures/tls/self-signed.${name}`, import.meta.url))

describe('OAuth for assistants', () => {
  const suite = withApi({ EGRESS_ALLOW: '127.0.0.0/8' })
  let owner: Visitor
  let member: Visitor
  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })
  beforeEach(() => forgetRegistrations(suite.db))
  const clientOf = () =>
    new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  const transportOf = (authProvider: OAuthClientProvider) =>
    new StreamableHTTPClientTransport(new URL('/mcp', suite.api.url), { authProvider })

  /** Connects with the client of the SDK: it finds everything by the answer of /mcp. */
  async function connectBySdk(provider: Provider, visitor: Visitor, scopes?: string[]): Promise<Client> {
    const transport = transportOf(provider)
    await assert.rejects(clientOf().connect(transport), UnauthorizedError)
    const { pathname, search } = provider.opened!
    const back = await consent(visitor, pathname + search, scopes)
    assert.equal(back.searchParams.get('state'), 'the state')
    await transport.finishAuth(back.searchParams)
    const client = clientOf()
    await client.connect(transportOf(provider))
    return client
  }

  it('connects the client of the SDK, which only knows the address of /mcp', async () => {
    const client = await connectBySdk(providerOf(), owner, ['contacts:write'])
    const { tools } = await client.listTools()
    assert.ok(tools.some(({ name }) => name === 'create_record'))
    assert.ok(!tools.some(({ name }) => name === 'run_workflow'))
    const { structuredContent } = await client.callTool({
      name: 'create_record',
      arguments: { kind: 'contacts', fields: { first_name: 'Ada' } },
    })
    const { id } = structuredContent as { id: string }
    const row = await suite.db.system('contacts').where({ id }).first('created_by')
    const { user } = (await suite.api.request('GET', '/app/session', { key: null, headers: owner.headers }))
      .body
    assert.deepEqual(row.created_by, { type: 'user', id: user.id }, 'the person has made it')
    await client.close()
  })

  it('connects one that has a metadata document instead of a registration', async () => {
    let served = 0
    const server = createServer({ key: pem('key'), cert: pem('crt') }, (_, response) => {
      served++
      response.setHeader('Content-Type', 'application/json').end(
        JSON.stringify({
          client_id: document,
          client_name: 'Documented',
          redirect_uris: ['http://127.0.0.1/callback'],
        }),
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const document = `https://127.0.0.1:${(server.address() as AddressInfo).port}/client.json`
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      const provider = providerOf({ clientMetadataUrl: document })
      const client = await connectBySdk(provider, member, ['contacts:read'])
      assert.ok((await client.listTools()).tools.length > 0)
      await client.close()
      assert.equal(served, 1, 'it is kept')
      const page = await member.get('/settings/assistants')
      assert.match(page.html, /Documented/)
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      server.close()
    }
  })

  it('follows no redirect of a metadata document: nothing behind it is asked', async () => {
    const asked: string[] = []
    const server = createServer({ key: pem('key'), cert: pem('crt') }, ({ url }, response) => {
      asked.push(url!)
      if (url === '/client.json') response.writeHead(302, { Location: '/elsewhere' })
      response.end('{}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const document = `https://127.0.0.1:${(server.address() as AddressInfo).port}/client.json`
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      const { status, html } = await member.get(authorizePath(asking(document, newVerifier())))
      assert.equal(status, 400)
      assert.match(textOf(html), /redirects to another address/)
      assert.deepEqual(asked, ['/client.json'])
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      server.close()
    }
  })

  it('describes itself where clients look', async () => {
    const { url } = suite.api
    const json = async (path: string) => (await fetch(url + path)).json()
    for (const path of [
      '/.well-known/oauth-protected-resource',
      '/.well-known/oauth-protected-resource/mcp',
    ]) {
      const { resource, authorization_servers } = await json(path)
      assert.deepEqual([resource, authorization_servers], [`${url}/mcp`, [url]])
    }
    const server = await json('/.well-known/oauth-authorization-server')
    assert.deepEqual(await json('/.well-known/openid-configuration'), server)
    assert.deepEqual(
      [server.issuer, server.code_challenge_methods_supported, server.response_types_supported],
      [url, ['S256'], ['code']],
    )
    for (const [headers, expected] of [
      [{}, `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"`],
      [
        { Authorization: 'Bearer agxa_unknown' },
        `Bearer error="invalid_token", resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"`,
      ],
    ] as const) {
      const answer = await fetch(`${url}/mcp`, { method: 'POST', headers })
      assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [401, expected])
    }
    const preflight = await fetch(`${url}/oauth/token`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://inspector.example.com', 'Access-Control-Request-Method': 'POST' },
    })
    assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [204, '*'])
  })

  it('asks a person who is not signed in to do so first, then shows the request', async () => {
    const path = authorizePath(asking(await registered(suite.api), newVerifier()))
    const stranger = await visitWith(suite.api).get(path)
    assert.deepEqual([stranger.status, stranger.location], [303, `/sign-in?next=${encodeURIComponent(path)}`])
    const response = await fetch(suite.api.url + path, { headers: { 'Sec-Fetch-Site': 'cross-site' } })
    assert.match(await response.text(), /http-equiv="refresh" content="0"/)
    const { html, headers } = await owner.get(path)
    assert.match(textOf(html), /Connect Claude \?.*as owner of Test.*The access goes to 127\.0\.0\.1/)
    const { scopes } = formOf(html, '/oauth/authorize')
    assert.ok(scopes!.includes('contacts:read') && !scopes!.includes('webhooks:write'))
    const policy = headers.get('content-security-policy')!
    assert.match(policy, /frame-ancestors 'none'/)
    assert.match(policy, /form-action 'self' http:\/\/127\.0\.0\.1:33418;/)
    const refuse = /<a class="button plain" href="([^"]+)"/.exec(html)![1]!.replaceAll('&amp;', '&')
    const refused = new URL(refuse)
    assert.equal(refused.origin + refused.pathname, CALLBACK)
    assert.deepEqual(Object.fromEntries(refused.searchParams), {
      error: 'access_denied',
      state: 'the state',
      iss: suite.api.url,
    })
  })

  it('gives a member what the role has', async () => {
    const { html } = await member.get(authorizePath(asking(await registered(suite.api), newVerifier())))
    assert.match(html, /value="contacts:write"/)
    assert.doesNotMatch(html, /value="(?:workflows:author|webhooks:write|records:reveal)"/)
  })

  it('sends what the client asked for, and answers with `iss`', async () => {
    const verifier = newVerifier()
    const clientId = await registered(suite.api)
    const resource = `${suite.api.url}/mcp`
    const path = authorizePath(
      asking(clientId, verifier, { scope: 'contacts:read openid', resource, nonce: 'x' }),
    )
    const { html } = await owner.get(path)
    assert.deepEqual(formOf(html, '/oauth/authorize').scopes, 'contacts:read')
    const back = await consent(owner, path)
    assert.equal(back.origin + back.pathname, CALLBACK)
    assert.equal(back.searchParams.get('iss'), suite.api.url)
    const { status, headers, body } = await postForm(suite.api, '/oauth/token', {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: back.searchParams.get('code')!,
      code_verifier: verifier,
      redirect_uri: CALLBACK,
      resource,
    })
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.deepEqual([body.token_type, body.expires_in, body.scope], ['Bearer', 3_600, 'contacts:read'])
  })

  it('is listed beside the keys with its last use, for a member the own ones, and ended like a key', async () => {
    const { api } = suite
    const tokens = await connected(api, member, ['contacts:read'])
    const list = () => api.request('POST', '/mcp', { key: tokens.access, ...rawMcp('tools/list') })
    assert.equal((await list()).status, 200)
    const read = async (visitor: Visitor) =>
      (await api.request('GET', '/app/grants', { key: null, headers: visitor.headers })).body.data
    const [own] = await read(member)
    assert.deepEqual([own.client_name, own.scopes, own.revoked_at], ['Claude', ['contacts:read'], null])
    assert.ok(own.last_used_at)
    assert.equal(
      new Set((await read(member)).map((grant: { user: { id: string } }) => grant.user.id)).size,
      1,
    )
    assert.ok(
      (await read(owner)).some(({ id }: { id: string }) => id === own.id),
      'an admin sees all',
    )
    const others = await visit(suite.db, api, 'member')
    assert.deepEqual(await read(others), [])
    const revoke = (visitor: Visitor) =>
      api.request('DELETE', `/app/grants/${own.id}`, { key: null, headers: visitor.headers })
    assert.equal((await revoke(others)).status, 404)
    const done = await member.submit('/settings/assistants', `/settings/assistants/${own.id}/disconnect`, {})
    assert.equal(done.location, '/settings/assistants?done=disconnected')
    assert.equal((await list()).status, 401)
    assert.equal((await refreshing(api, tokens)).body.error, 'invalid_grant')
    assert.equal((await revoke(owner)).status, 200, 'again')
    const entries = await suite.db
      .system('audit_log')
      .where({ target_id: own.id })
      .orderBy('id')
      .pluck('action')
    assert.deepEqual(entries, ['grant.created', 'grant.revoked'])
  })

  it('is ended by its client, which has no further use for it', async () => {
    const tokens = await connected(suite.api, owner)
    const revoke = (token: string, clientId = tokens.clientId) =>
      postForm(suite.api, '/oauth/revoke', { token, client_id: clientId })
    assert.equal((await revoke(tokens.refresh, await registered(suite.api))).status, 200)
    const list = () => suite.api.request('POST', '/mcp', { key: tokens.access, ...rawMcp('tools/list') })
    assert.equal((await list()).status, 200, 'another client cannot')
    assert.equal((await revoke('agxr_unknown')).status, 200)
    assert.equal((await revoke(tokens.refresh)).status, 200)
    assert.equal((await list()).status, 401)
  })

  it('counts against the limits that a key has', async () => {
    const { access } = await connected(suite.api, owner)
    const { headers } = await suite.api.request('POST', '/mcp', { key: access, ...rawMcp('tools/list') })
    assert.match(headers.get('ratelimit-policy')!, /^"(?:grant|organization)"/)
    assert.equal(headers.get('x-ratelimit-limit'), '6000')
    assert.equal((await suite.api.request('GET', '/v1/me', { key: access })).status, 401, 'for /mcp only')
  })

  it('is known to every process: consent, exchange and use on different ones', async () => {
    const { db } = suite
    const env = { PUBLIC_URL: 'https://agx.example.com', SECRETS_KEY: randomBytes(32).toString('base64') }
    const [first, second] = [await startApi(db, env), await startApi(db, env)]
    try {
      const connection = await withCode(first, await visit(db, first))
      const { body } = await postForm(second, '/oauth/token', exchanging(connection))
      const use = { key: body.access_token, ...rawMcp('tools/list') }
      for (const { request } of [first, second, first])
        assert.equal((await request('POST', '/mcp', use)).status, 200)
      const { clientId } = connection
      const refreshed = await refreshing(first, { clientId, refresh: body.refresh_token })
      assert.equal(refreshed.status, 200)
      await second.request('POST', '/mcp', { ...use, key: refreshed.body.access_token })
      const reused = await refreshing(second, { clientId, refresh: body.refresh_token })
      assert.equal(reused.body.error, 'invalid_grant')
      assert.equal((await first.request('POST', '/mcp', use)).status, 401)
    } finally {
      await first.close()
      await second.close()
    }
  })

  it('ends with the password: a reset disconnects every assistant', async () => {
    const { db, api } = suite
    const headers = owner.headers
    const { user } = (await api.request('GET', '/app/session', { key: null, headers })).body
    const { access } = await connected(api, owner)
    await setPassword(db.system, user.email, 'correct horse battery staple')
    const list = await api.request('POST', '/mcp', { key: access, ...rawMcp('tools/list') })
    assert.equal(list.status, 401)
    const grants = await db.system('oauth_grants').where({ user_id: user.id }).whereNotNull('code_used_at')
    for (const grant of grants) {
      const entries = await db.system('audit_log').where({ target_id: grant.id, action: 'grant.revoked' })
      assert.equal(entries.length, 1, 'once, also if it was ended before')
      assert.deepEqual(entries[0].organization_id, grant.organization_id)
    }
    const last = await db.system('audit_log').where({ action: 'grant.revoked' }).orderBy('id', 'desc').first()
    assert.deepEqual([last.target_name, last.details], ['Claude', { reason: 'password_changed' }])
    owner = await visit(db, api)
  })
})
