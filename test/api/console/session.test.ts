import assert from 'node:assert/strict'
import { createUser } from '../../../db/access/users.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { formOf, visit, visitWith } from '../../support/console.ts'
import { planted } from '../../support/planted.ts'
import { withApi } from '../../support/with-api.ts'

describe('the session of the console', () => {
  const suite = withApi()
  const password = planted('correct horse battery staple')

  before(() =>
    createUser(suite.db.system, {
      password,
      organizationId: suite.api.organizationId,
      email: 'ada@example.com',
      name: 'Ada',
      role: 'owner',
    }),
  )

  const signIn = (fields: Record<string, string> = {}) =>
    visitWith(suite.api).submit('/sign-in', '/sign-in', { email: 'ada@example.com', password, ...fields })

  it('begins with the sign-in, which leads to where one wanted to go', async () => {
    const stranger = visitWith(suite.api)
    assert.equal((await stranger.get('/')).location, '/sign-in')
    const { status, location } = await stranger.get('/organizations?x=1')
    assert.deepEqual([status, location], [303, '/sign-in?next=%2Forganizations%3Fx%3D1'])
    const signedIn = await signIn({ next: '/organizations' })
    assert.deepEqual([signedIn.status, signedIn.location], [303, '/organizations'])
    const cookie = signedIn.headers.get('set-cookie')!
    assert.match(cookie, /^agx_session=\S+; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Strict$/)
    const page = await visitWith(suite.api, { Cookie: cookie.split(';')[0]! }).get('/')
    assert.equal(page.status, 200)
    assert.match(page.html, /First steps/)
  })

  it('shows the way to sign up only while that is open', async () => {
    const pages = async (api: TestApi) =>
      Promise.all(['/sign-in', '/sign-up'].map((path) => visitWith(api).get(path)))
    const [closedIn, closedUp] = await pages(suite.api)
    assert.doesNotMatch(closedIn!.html, /sign-up/)
    assert.deepEqual([closedUp!.status, /<form/.test(closedUp!.html)], [404, false])
    const open = await startApi(suite.db, { SIGN_UP: 'open' })
    try {
      const [openIn, openUp] = await pages(open)
      assert.match(openIn!.html, /href="\/sign-up"/)
      assert.deepEqual([openUp!.status, /<form/.test(openUp!.html)], [200, true])
    } finally {
      await open.close()
    }
  })

  it('does not begin with a wrong password, nor lead to another host', async () => {
    const refused = await signIn({ password: 'wrong horse' })
    assert.equal(refused.status, 401)
    assert.match(refused.html, /wrong email or password/)
    assert.match(refused.html, /value="ada@example.com"/)
    assert.doesNotMatch(refused.html, /wrong horse/)
    for (const next of ['//evil.example', 'https://evil.example', '/\\evil.example', 'javascript:alert(1)'])
      assert.equal((await signIn({ next })).location, '/', next)
  })

  it('keeps what was typed if it ended in the middle of a form', async () => {
    const ended = visitWith(suite.api, { Cookie: 'agx_session=ended' })
    const typed = { name: 'A "new" <key>', scopes: ['contacts:read', 'deals:read'], csrf_token: 'old' }
    const asked = await ended.post('/settings/keys', typed)
    assert.equal(asked.status, 401)
    assert.match(asked.html, /nothing you typed is lost/)
    const fields = formOf(asked.html, '/sign-in')
    const resumed = await visitWith(suite.api).post('/sign-in', {
      ...fields,
      email: 'ada@example.com',
      password,
    })
    assert.equal(resumed.status, 200)
    const cookie = resumed.headers.get('set-cookie')!.split(';')[0]!
    const again = formOf(resumed.html, '/settings/keys')
    assert.deepEqual([again.name, again.scopes], [typed.name, typed.scopes])
    assert.notEqual(again.csrf_token, 'old')
    const made = await visitWith(suite.api, { Cookie: cookie }).post('/settings/keys', again)
    assert.equal(made.status, 201)
    assert.match(made.html, /agx_/)
  })

  it('refuses forms of other sites, and a form of another session is asked about again', async () => {
    const owner = await visit(suite.db, suite.api)
    const foreign = await fetch(`${suite.api.url}/sign-out`, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        Cookie: owner.headers.Cookie!,
        'Content-Type': 'application/x-www-form-urlencoded',
        Origin: 'https://evil.example',
      },
    })
    assert.equal(foreign.status, 403)
    const stale = await owner.post('/settings/keys', {
      name: 'Site',
      scopes: 'contacts:read',
      csrf_token: 'old',
    })
    assert.match(stale.html, /Nothing you typed is lost/)
    assert.equal(formOf(stale.html, '/settings/keys').name, 'Site')
    const { html } = await owner.get('/settings/keys')
    assert.doesNotMatch(html, /Site/)
  })

  it('turns the mails of reminders on and off', async () => {
    const owner = await visit(suite.db, suite.api)
    for (const [shown, value, next] of [
      [/are not mailed to you/, 'true', /are mailed to you/],
      [/are mailed to you/, 'false', /are not mailed to you/],
    ] as const) {
      const { html } = await owner.get('/organizations')
      assert.match(html, shown)
      const fields = formOf(html, '/preferences')
      assert.equal(fields.task_reminder_mails, value)
      assert.equal((await owner.post('/preferences', fields)).location, '/organizations')
      assert.match((await owner.get('/organizations')).html, next)
    }
  })

  it('ends with the sign-out', async () => {
    const owner = await visit(suite.db, suite.api)
    const left = await owner.submit('/', '/sign-out', {})
    assert.equal(left.location, '/sign-in')
    assert.match(left.headers.get('set-cookie')!, /agx_session=;/)
    assert.equal((await owner.get('/')).location, '/sign-in')
  })
})

describe('the pages of the console', () => {
  const suite = withApi()

  it('have a strict policy, are not cached, and contain no inline code', async () => {
    const owner = await visit(suite.db, suite.api)
    for (const path of ['/', '/design', '/organizations', '/nothing-here', '/settings/nothing']) {
      const { headers, html, status } = await owner.get(path)
      if (path === '/nothing-here') {
        assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
        continue
      }
      assert.equal(status, path === '/settings/nothing' ? 404 : 200)
      const policy = headers.get('content-security-policy')!
      assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/)
      assert.doesNotMatch(policy, /unsafe|http|\*/)
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.doesNotMatch(html, /<script(?![^>]* src=)|<style| style=| on[a-z]+="/)
      assert.ok(html.length < 60_000, `${path} has ${html.length} characters`)
    }
  })

  it('say what is wrong with a request that no form sends', async () => {
    const owner = await visit(suite.db, suite.api)
    const send = (method: string, path: string, body?: string, type = 'application/x-www-form-urlencoded') =>
      fetch(suite.api.url + path, {
        method,
        headers: { Cookie: owner.headers.Cookie!, ...(body !== undefined && { 'Content-Type': type }) },
        ...(body !== undefined && { body }),
      })
    for (const [status, answer] of [
      [405, send('DELETE', '/settings/keys')],
      [405, send('POST', '/records/contacts/new', 'a=b')],
      [415, send('POST', '/settings/keys', '{}', 'application/json')],
      [400, send('POST', '/settings/keys', 'name=%FF')],
      [413, send('POST', '/settings/keys', `name=${'x'.repeat(5 * 1024 * 1024)}`)],
      [404, send('GET', '/records/contacts/not-an-id')],
      [404, send('GET', '/records/%E0%A4%A')],
      [404, send('GET', '/runs/../../etc')],
      [400, send('GET', '/records/contacts?q=%FF')],
      [400, send('GET', '/runs?cursor=x')],
      [200, send('HEAD', '/settings/keys')],
    ] as const) {
      const { status: is, headers, url } = await answer
      assert.equal(is, status, url)
      assert.match(headers.get('content-type') ?? '', /^(text\/html|application\/json)/)
    }
  })

  it('load assets that browsers keep, below 150 KB in all', async () => {
    const { html } = await visitWith(suite.api).get('/sign-in')
    const paths = [...html.matchAll(/"(\/assets\/[^"#]+)/g)].map(([, path]) => path!)
    assert.equal(new Set(paths).size, 3)
    let size = 0
    for (const path of new Set(paths)) {
      const answer = await fetch(suite.api.url + path)
      assert.match(answer.headers.get('cache-control')!, /immutable/)
      size += (await answer.arrayBuffer()).byteLength
    }
    assert.ok(size < 150_000, `${size} bytes`)
    assert.equal((await fetch(`${suite.api.url}/assets/console-other.css`)).status, 404)
  })

  it('have the theme that was chosen', async () => {
    const visitor = visitWith(suite.api)
    assert.match((await visitor.get('/sign-in')).html, /data-theme="system"/)
    const chosen = await visitor.post('/theme', { theme: 'dark', next: '/sign-in' })
    assert.equal(chosen.location, '/sign-in')
    const cookie = chosen.headers.get('set-cookie')!.split(';')[0]!
    assert.match((await visitWith(suite.api, { Cookie: cookie }).get('/sign-in')).html, /data-theme="dark"/)
  })
})
