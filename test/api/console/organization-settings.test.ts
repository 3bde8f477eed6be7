import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { startApi } from '../../support/api.ts'
import { formOf, textOf, type Visitor, visit, visitWith } from '../../support/console.ts'
import { createMember } from '../../support/database.ts'
import { assertEscaped, EVIL } from '../../support/markup.ts'
import { headersOf } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('the settings of the organization in the console', () => {
  const suite = withApi({ PLAN_CHANGES: 'open' })
  let owner: Visitor
  let admin: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    admin = await visit(suite.db, suite.api, 'admin')
    member = await visit(suite.db, suite.api, 'member')
  })

  const app = (method: string, path: string, body?: object) =>
    suite.api.request(method, `/app${path}`, { key: null, headers: owner.headers, ...(body && { body }) })

  describe('of all kinds', () => {
    const linked = (html: string) =>
      new Set([...html.matchAll(/href="(\/(?:settings|organizations)[^"?]*)"/g)].map(([, href]) => href!))

    it('are found from the overview, each by the roles that may see it', async () => {
      for (const [visitor, closed] of [
        [owner, []],
        [admin, []],
        [
          member,
          [
            '/settings/audit-log',
            '/settings/secrets',
            '/settings/mail-suppressions',
            '/settings/keys',
            '/settings/members/invite',
          ],
        ],
      ] as [Visitor, string[]][]) {
        const { html } = await visitor.get('/settings')
        const shown = linked(html)
        for (const href of shown) assert.equal((await visitor.get(href)).status, 200, href)
        for (const href of closed) {
          assert.ok(!shown.has(href), href)
          const page = await visitor.get(href)
          assert.equal(page.status, 403, href)
          assert.match(page.html, /You are signed in as member/)
        }
      }
    })

    it('have pages of less than 60 KB', async () => {
      for (const href of linked((await owner.get('/settings')).html)) {
        const { html } = await owner.get(href)
        assert.ok(Buffer.byteLength(html) < 60_000, `${href}: ${Buffer.byteLength(html)} bytes`)
      }
    })

    it('refuse forms without the token, and those of members', async () => {
      const someone = await createMember(suite.db, suite.api.organizationId)
      const forms: [path: string, fields: Record<string, string>][] = [
        ['/settings/organization', { name: 'Taken over' }],
        ['/settings/members/invite', { email: 'mallory@example.com', role: 'owner' }],
        [`/settings/members/${someone}`, { role: 'owner' }],
        [`/settings/members/${someone}/password-reset`, {}],
        [`/settings/members/${someone}/remove`, {}],
        ['/settings/usage', { plan: 'free' }],
        ['/settings/variables', { name: 'x', type: 'text', value: 'y' }],
        ['/settings/secrets', { name: 'x', secret: 'a-secret-of-some-length' }],
        ['/settings/mail-suppressions', { address: 'ada@example.com' }],
      ]
      const { csrf_token } = formOf((await member.get('/')).html, '/sign-out')
      for (const [path, fields] of forms) {
        assert.equal((await owner.post(path, fields)).status, 200, path)
        assert.match((await owner.post(path, fields)).html, /<form[^>]*data-once/, path)
        const sent = await member.post(path, { ...fields, csrf_token: csrf_token as string })
        assert.equal(sent.status, 403, path)
      }
      const { body } = await app('GET', '/organization')
      assert.deepEqual([body.name, body.plan, body.env], ['Test', 'enterprise', {}])
    })
  })

  describe('in general', () => {
    it('are changed, and leave alone what was not', async () => {
      const saved = await owner.submit('/settings/organization', '/settings/organization', {
        name: EVIL,
        timezone: 'Europe/Zurich',
        country: 'CH',
        locale: 'de-CH',
        log_retention_days: '14',
      })
      assert.equal(saved.location, '/settings/organization?done=saved', textOf(saved.html))
      const { body } = await app('GET', '/organization')
      assert.deepEqual(
        [body.name, body.timezone, body.country, body.locale, body.log_retention_days, body.currency],
        [EVIL, 'Europe/Zurich', 'CH', 'de-CH', 14, 'USD'],
      )
      for (const visitor of [owner, member]) assertEscaped((await visitor.get('/settings/organization')).html)
      assert.doesNotMatch((await member.get('/settings/organization')).html, /<select|name="locale"/)
      assert.match((await member.get('/settings/organization')).html, /Europe\/Zurich/)
    })

    it('say at the field what is wrong, and keep what was typed', async () => {
      const { status, html } = await owner.submit('/settings/organization', '/settings/organization', {
        name: '',
        locale: 'no language',
        run_retention_days: 'long',
      })
      assert.equal(status, 422)
      for (const field of ['name', 'locale', 'run_retention_days'])
        assert.match(html, new RegExp(`href="#f-${field}"`))
      assert.match(html, /value="no language"/)
    })
  })

  describe('of members', () => {
    it('invite a person by a link that is shown once, again, and not any more', async () => {
      const invited = await owner.submit('/settings/members/invite', '/settings/members/invite', {
        email: 'grace@example.com',
      })
      assert.equal(invited.status, 201, textOf(invited.html))
      const link = /<code title="([^"]+)">/.exec(invited.html)![1]!
      assert.match(link, /^http.+\/invitations\/[\w-]+/)
      const list = await owner.get('/settings/members')
      assert.ok(!list.html.includes(link))
      const again = await owner.submit('/settings/members', '/settings/members/invite', {
        email: 'grace@example.com',
        role: 'admin',
      })
      assert.equal(again.status, 201)
      const { body } = await app('GET', '/invitations')
      assert.deepEqual(
        body.data.map(({ email, role }: { email: string; role: string }) => [email, role]),
        [['grace@example.com', 'admin']],
      )
      const withdraw = `/settings/members/invitations/${body.data[0].id}/withdraw`
      const withdrawn = await owner.submit('/settings/members', withdraw, {})
      assert.equal(withdrawn.location, '/settings/members?done=withdrawn')
      assert.deepEqual((await app('GET', '/invitations')).body.data, [])
      assert.match((await owner.get('/settings/members')).html, /Nobody is invited/)
    })

    it('mail the links if the service sends mails, and show them nowhere', async () => {
      const mailing = await startApi(suite.db, {
        SMTP_URL: 'smtp://127.0.0.1:1',
        MAIL_FROM: 'agx@example.com',
        PUBLIC_URL: 'http://agx.example.com',
      })
      try {
        const id = await createMember(suite.db, mailing.organizationId, 'Mailed', 'owner')
        const boss = visitWith(mailing, await headersOf(suite.db, mailing, id))
        const form = '/settings/members/invite'
        const invited = await boss.submit(form, form, { email: 'linus@example.com' })
        assert.equal(invited.location, '/settings/members?done=invited', textOf(invited.html))
        const list = await boss.get('/settings/members')
        assert.match(list.html, /on its way/)
        assert.doesNotMatch(list.html, /\/invitations\/[\w-]{40}/)
        const someone = await createMember(suite.db, mailing.organizationId, 'Someone')
        const path = `/settings/members/${someone}`
        const reset = await boss.submit(path, `${path}/password-reset`, {})
        assert.equal(reset.location, `${path}?done=mailed`, textOf(reset.html))
      } finally {
        await mailing.close()
      }
    })

    it('say what is wrong with an invitation', async () => {
      const { status, html } = await owner.submit('/settings/members/invite', '/settings/members/invite', {
        email: 'nowhere',
      })
      assert.equal(status, 422)
      assert.match(html, /href="#f-email"/)
      assert.match(html, /value="nowhere"/)
      const denied = await admin.submit('/settings/members/invite', '/settings/members/invite', {
        email: 'boss@example.com',
        role: 'owner',
      })
      assert.equal(denied.status, 403)
      assert.match(denied.html, /role="alert"/)
    })

    it('change a role, and make a link for a new password', async () => {
      const id = await createMember(suite.db, suite.api.organizationId, EVIL, 'member')
      const path = `/settings/members/${id}`
      assertEscaped((await owner.get('/settings/members')).html)
      assertEscaped((await owner.get(path)).html)
      assert.equal((await owner.submit(path, path, { role: 'admin' })).location, `${path}?done=saved`)
      assert.match((await owner.get(path)).html, /<option value="admin" selected/)
      const reset = await owner.submit(path, `${path}/password-reset`, {})
      assert.equal(reset.status, 201, textOf(reset.html))
      assert.match(reset.html, /password-resets\/[\w-]+/)
      const shown = await member.get(path)
      assert.equal(shown.status, 200)
      assert.doesNotMatch(shown.html, /\/(remove|password-reset)"/)
      assert.equal((await owner.get(`/settings/members/${randomUUID()}`)).status, 404)
    })

    it('remove one who holds records only if others get them', async () => {
      const leaving = await createMember(suite.db, suite.api.organizationId, 'Leaving')
      const heir = await createMember(suite.db, suite.api.organizationId, 'Heir')
      const { body: deal } = await suite.api.request('POST', '/v1/objects/deals', {
        body: { name: 'Held', owner_id: leaving },
      })
      const path = `/settings/members/${leaving}`
      const refused = await owner.submit(path, `${path}/remove`, { hand_over: '' })
      assert.equal(refused.status, 409)
      assert.match(refused.html, /owner_id of deals/)
      const nobody = await owner.submit(path, `${path}/remove`, { hand_over: 'members' })
      assert.equal(nobody.status, 422)
      assert.match(nobody.html, /value="members" checked/)
      const removed = await owner.submit(path, `${path}/remove`, { hand_over: 'members', heir })
      assert.equal(removed.location, '/settings/members?done=member_removed', textOf(removed.html))
      assert.equal((await owner.get(path)).status, 404)
      const { body: jobs } = await suite.api.request('GET', '/v1/bulk-jobs')
      assert.equal(jobs.data.length, 1)
      assert.ok(deal.id)
    })
  })

  describe('of the plan', () => {
    it('show what is used, and change the plan by an owner only', async () => {
      const { html } = await member.get('/settings/usage')
      assert.match(html, /Incoming webhooks/)
      assert.match(html, /no limit/)
      assert.doesNotMatch(html, /name="plan"/)
      assert.doesNotMatch((await admin.get('/settings/usage')).html, /name="plan"/)
      const changed = await owner.submit('/settings/usage', '/settings/usage', { plan: 'free' })
      assert.equal(changed.location, '/settings/usage?done=saved', textOf(changed.html))
      await suite.api.request('POST', '/v1/webhooks/incoming', { body: { name: 'Form' } })
      const used = (await owner.get('/settings/usage')).html
      assert.match(used, /<rect class="part" width="33.3"/)
      assert.match(used, /33 %/)
      await owner.submit('/settings/usage', '/settings/usage', { plan: 'enterprise' })
    })
  })

  describe('of the audit log', () => {
    it('show who did what, filtered', async () => {
      await owner.submit('/settings/variables', '/settings/variables', {
        name: 'audited',
        type: 'text',
        value: 'x',
      })
      const all = await admin.get('/settings/audit-log')
      assert.match(all.html, /Organization: updated/)
      assert.match(all.html, /Fields: env/)
      const none = await admin.get('/settings/audit-log?action=pipeline.deleted')
      assert.match(none.html, /No entry matches/)
      const some = await admin.get('/settings/audit-log?action=organization.updated')
      assert.doesNotMatch(some.html, /<td>Member/)
      assertEscaped((await admin.get('/settings/audit-log?action=member.role_changed')).html)
      const wrong = await admin.get('/settings/audit-log?actor_id=nobody')
      assert.equal(wrong.status, 422)
      assert.match(wrong.html, /role="alert"/)
    })
  })

  describe('of variables', () => {
    const submit = (fields: Record<string, string>) =>
      owner.submit('/settings/variables', '/settings/variables', fields)
    const env = async () => (await app('GET', '/organization')).body.env

    it('store texts, numbers and booleans, change and delete them', async () => {
      for (const [name, type, value] of [
        ['crm_url', 'text', EVIL],
        ['vat', 'number', '0.081'],
        ['is_open', 'boolean', 'true'],
        ['code', 'text', '007'],
      ] as const)
        assert.equal((await submit({ name, type, value })).location, '/settings/variables?done=saved', name)
      const { crm_url, vat, is_open, code } = await env()
      assert.deepEqual([crm_url, vat, is_open, code], [EVIL, 0.081, true, '007'])
      assertEscaped((await member.get('/settings/variables')).html)
      const edit = formOf((await owner.get('/settings/variables?edit=vat')).html, '/settings/variables')
      assert.deepEqual([edit.name, edit.type, edit.value], ['vat', 'number', '0.081'])
      assert.doesNotMatch((await member.get('/settings/variables')).html, /variables\/delete/)
      await owner.submit('/settings/variables', '/settings/variables/delete', { name: 'vat' })
      assert.equal((await env()).vat, undefined)
    })

    it('say what is wrong with a name, and keep what was typed', async () => {
      const { status, html } = await submit({ name: 'not a name', type: 'text', value: 'kept' })
      assert.equal(status, 422)
      assert.match(html, /href="#f-name"/)
      assert.match(html, /value="kept"/)
    })
  })

  describe('of secrets', () => {
    it('store, replace and delete one, and show it never', async () => {
      const secret = 'sk-a-secret-that-nobody-reads'
      const { location } = await owner.submit('/settings/secrets/new', '/settings/secrets', {
        name: 'billing_token',
        secret,
      })
      assert.equal(location, '/settings/secrets?done=saved')
      const list = await owner.get('/settings/secrets')
      assert.match(list.html, /\{\{ secrets\.billing_token }}/)
      assert.ok(!list.html.includes(secret))
      const form = await owner.get('/settings/secrets/new?name=billing_token')
      assert.match(form.html, /value="billing_token"/)
      const gone = '/settings/secrets/billing_token/delete'
      assert.equal(
        (await owner.submit('/settings/secrets', gone, {})).location,
        '/settings/secrets?done=removed',
      )
      assert.match((await owner.get('/settings/secrets')).html, /No secret yet/)
    })

    it('say what is wrong without showing the secret again, also after the end of a session', async () => {
      const sent = { name: 'no name', secret: 'sk-not-to-be-echoed' }
      const { status, html } = await owner.submit('/settings/secrets/new', '/settings/secrets', sent)
      assert.equal(status, 422)
      assert.match(html, /href="#f-name"/)
      assert.ok(!html.includes(sent.secret))
      const short = await owner.submit('/settings/secrets/new', '/settings/secrets', {
        name: 'short',
        secret: 'x',
      })
      assert.match(short.html, /href="#f-secret"/)
      const ended = await visitWith(suite.api, { Cookie: 'agx_session=ended' }).post(
        '/settings/secrets',
        sent,
      )
      assert.equal(ended.status, 401)
      assert.ok(!ended.html.includes(sent.secret))
      const empty = await owner.submit('/settings/secrets/new', '/settings/secrets', { name: '', secret: '' })
      assert.equal(empty.status, 422)
    })
  })

  describe('of suppressed addresses', () => {
    it('add, find and remove one', async () => {
      const path = '/settings/mail-suppressions'
      const add = (address: string) => owner.submit(path, path, { address })
      assert.equal((await add('grace@example.com')).location, `${path}?done=saved`)
      const twice = await add('grace@example.com')
      assert.equal(twice.status, 409)
      assert.match(twice.html, /role="alert"/)
      assert.match((await add('nobody')).html, /is not a mail address/)
      assert.match((await owner.get(`${path}?reason=unsubscribed`)).html, /No address matches/)
      const { html } = await owner.get(`${path}?address=GRACE@example.com`)
      const remove = /action="([^"]+\/remove)"/.exec(html)![1]!
      assert.equal((await owner.submit(path, remove, {})).location, `${path}?done=removed`)
      assert.match((await owner.get(path)).html, /Nobody is suppressed/)
    })
  })

  describe('of the own account', () => {
    it('show the own sessions, and end another one', async () => {
      const id = await createMember(suite.db, suite.api.organizationId, EVIL)
      const [here, there] = [
        visitWith(suite.api, await headersOf(suite.db, suite.api, id)),
        visitWith(suite.api, await headersOf(suite.db, suite.api, id)),
      ]
      const page = await here.get('/settings/account')
      assertEscaped(page.html)
      const [end, ...more] = [...page.html.matchAll(/action="([^"]+\/end)"/g)].map(([, action]) => action!)
      assert.equal(more.length, 0)
      assert.equal(
        (await here.submit('/settings/account', end!, {})).location,
        '/settings/account?done=ended',
      )
      assert.equal((await there.get('/settings/account')).status, 303)
      assert.equal((await here.get('/settings/account')).status, 200)
      const asked = await here.submit('/settings/account', '/settings/account/password', {})
      assert.equal(asked.location, '/settings/account?done=reset_requested')
      assert.match((await owner.get('/settings/audit-log?action=password_reset.requested')).html, /<td>/)
    })
  })
})
