import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { formOf, textOf, type Visitor, visit } from '../../support/console.ts'
import { assertEscaped, EVIL } from '../../support/markup.ts'
import { startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { withApiAndWorker } from '../../support/with-api.ts'

describe('the settings in the console', () => {
  const suite = withApiAndWorker({ ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' })
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  describe('of keys', () => {
    const make = (fields: Record<string, string | string[]>) =>
      owner.submit('/settings/keys/new', '/settings/keys', fields)

    it('shows the secret once, also for a double click, and the key works', async () => {
      const { html } = await owner.get('/settings/keys/new')
      const fields = {
        ...formOf(html, '/settings/keys'),
        name: EVIL,
        scopes: ['contacts:read', 'deals:read'],
      }
      const [first, second] = [
        await owner.post('/settings/keys', fields),
        await owner.post('/settings/keys', fields),
      ]
      const key = /agx_\w{46}/.exec(first.html)![0]
      assert.deepEqual([first.status, second.status], [201, 201])
      assert.ok(second.html.includes(key))
      assert.equal((await suite.api.request('GET', '/v1/objects/contacts', { key })).status, 200)
      assert.equal((await suite.api.request('GET', '/v1/objects/tasks', { key })).status, 403)
      const list = await owner.get('/settings/keys')
      assert.ok(!list.html.includes(key))
      assert.equal(list.html.match(/title="&lt;script/g)?.length, 1)
      for (const page of [first, list]) assertEscaped(page.html)
      const revoke = /action="(\/settings\/keys\/[^/]+\/revoke)"/.exec(list.html)![1]!
      assert.equal((await owner.submit('/settings/keys', revoke, {})).location, '/settings/keys?done=revoked')
      assert.equal((await suite.api.request('GET', '/v1/objects/contacts', { key })).status, 401)
    })

    it('says at the field what is wrong, and keeps what was typed', async () => {
      const { status, html } = await make({ name: 'x'.repeat(101), ip_allowlist: '10.0.0.0/8\nnowhere' })
      assert.equal(status, 422)
      assert.match(html, /<a href="#f-name">Name<\/a>/)
      assert.match(html, /<a href="#f-scopes">Scopes<\/a>/)
      assert.match(html, /is neither an IP address nor a CIDR range/)
      assert.match(html, new RegExp(`value="${'x'.repeat(101)}"`))
      assert.match(html, /10\.0\.0\.0\/8\nnowhere<\/textarea>/)
    })

    it('are closed to members, as all forms that they may not send', async () => {
      assert.doesNotMatch((await member.get('/')).html, /settings\/keys/)
      const none = `${randomUUID()}/edit`
      for (const path of [
        '/settings/keys',
        '/settings/keys/new',
        '/workflows/new',
        ...['incoming', 'outgoing'].flatMap((direction) =>
          ['new', none].map((page) => `/settings/webhooks/${direction}/${page}`),
        ),
      ]) {
        const { status, html } = await member.get(path)
        assert.equal(status, 403, path)
        assert.match(html, /You are signed in as member/)
      }
      const { csrf_token } = formOf((await member.get('/')).html, '/sign-out')
      const sent = { csrf_token: csrf_token as string, name: 'x', scopes: 'contacts:read' }
      assert.equal((await member.post('/settings/keys', sent)).status, 403)
    })
  })

  describe('of outgoing webhooks', () => {
    let receiver: Awaited<ReturnType<typeof startReceiver>>
    before(async () => {
      receiver = await startReceiver()
    })
    after(() => receiver.close())

    it('makes one, tests it, and sends a delivery again', async () => {
      const form = await owner.submit('/settings/webhooks/outgoing/new', '/settings/webhooks/outgoing', {
        name: EVIL,
        url: receiver.url,
        events: 'contact.created\ndeal.*',
        headers: 'X-Team: sales',
        retry_schedule: '1\n2',
      })
      assert.equal(form.status, 201, textOf(form.html))
      assert.match(form.html, /whsec_/)
      const path = /href="(\/settings\/webhooks\/outgoing\/[0-9a-f-]{36})"/.exec(form.html)![1]!
      const tested = await owner.submit(path, `${path}/test`, {})
      assert.equal(tested.location, `${path}?done=sent`)
      const delivery = await until(async () => {
        const { html } = await owner.get(`${path}?status=succeeded`)
        return /href="(\/settings\/deliveries\/[^"]+)"/.exec(html)?.[1]
      })
      const page = await owner.get(delivery)
      assert.match(page.html, /contact\.created/)
      const again = await owner.submit(delivery, `${delivery}/resend`, {})
      assert.match(again.location!, /^\/settings\/deliveries\/[^?]+\?done=resent$/)
      for (const html of [
        form.html,
        (await owner.get(path)).html,
        (await owner.get('/settings/webhooks/outgoing')).html,
      ])
        assertEscaped(html)
      assert.doesNotMatch((await owner.get(path)).html, /whsec_/)
      assert.match((await owner.get(path)).html, /1 s, 2 s/)
      const edited = await owner.submit(`${path}/edit`, path, { retry_schedule: '', name: 'Receiver' })
      assert.equal(edited.location, `${path}?done=saved`)
      assert.match((await owner.get(path)).html, /the default schedule/)
    })

    it('says at the field what is wrong', async () => {
      const { status, html } = await owner.submit(
        '/settings/webhooks/outgoing/new',
        '/settings/webhooks/outgoing',
        {
          name: 'x',
          url: 'nowhere',
          events: 'contact.craeted',
          timeout_ms: 'soon',
        },
      )
      assert.equal(status, 422)
      for (const field of ['url', 'events', 'timeout_ms'])
        assert.match(html, new RegExp(`href="#f-${field}"`))
      assert.match(html, /did you mean contact\.created/)
      assert.match(html, /value="soon"/)
    })

    it('shows members the webhooks, without the ways to change them', async () => {
      const { html } = await member.get('/settings/webhooks/outgoing')
      assert.doesNotMatch(html, /outgoing\/new/)
      const path = /href="(\/settings\/webhooks\/outgoing\/[0-9a-f-]{36})"/.exec(html)![1]!
      const page = await member.get(path)
      assert.equal(page.status, 200)
      assert.doesNotMatch(page.html, /\/(test|delete|rotate-secret|edit)"/)
      assert.ok(!page.html.includes(`${receiver.url}<`))
    })
  })

  describe('of incoming webhooks', () => {
    it('makes one, whose secret works, and shows its log', async () => {
      const made = await owner.submit('/settings/webhooks/incoming/new', '/settings/webhooks/incoming', {
        name: EVIL,
        description: EVIL,
        rate_limit: '100',
        'deduplication.action': 'Skip',
      })
      assert.equal(made.status, 201, textOf(made.html))
      const [, url, secret] = /curl (\S+) -H 'X-Webhook-Secret: (\S+)'/.exec(
        made.html.replaceAll('&#39;', "'"),
      )!
      const path = /href="(\/settings\/webhooks\/incoming\/[0-9a-f-]{36})"/.exec(made.html)![1]!
      const send = (body: object) =>
        fetch(suite.api.url + new URL(url!).pathname, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', 'X-Webhook-Secret': secret! },
          body: JSON.stringify(body),
        })
      assert.equal((await send({ name: EVIL, email: 'ada@example.com' })).status, 200)
      assert.equal((await send({ email: 'nowhere' })).status, 400)
      const page = await owner.get(path)
      assert.match(page.html, /Skip by email/)
      assert.match(page.html, /created<|Created</)
      assert.match((await owner.get(`${path}?status=Failed`)).html, /1 in all/)
      const entry = /href="(\/settings\/webhooks\/incoming\/[^"]+\/logs\/[^"]+)"/.exec(
        (await owner.get(`${path}?status=Success`)).html,
      )![1]!
      const log = await owner.get(entry)
      assert.match(log.html, /href="\/records\/contacts\//)
      for (const { html } of [page, log, await owner.get('/settings/webhooks/incoming'), made])
        assertEscaped(html)
      assert.match(page.html, /recognised by each request/)
      assert.match(page.html, /companies, notes/)
      await owner.submit(`${path}/edit`, path, { sender: 'kit' })
      assert.match((await owner.get(path)).html, /kit<.*token</s)
      await owner.submit(`${path}/edit`, path, { sender: '' })
      assert.match((await owner.get(path)).html, /recognised by each request/)
      const changed = await owner.submit(`${path}/edit`, path, { burst: '7' })
      assert.equal(changed.location, `${path}?done=saved`)
      assert.match((await owner.get(path)).html, /100 a minute, and 7 at once/)
      const off = await owner.submit(path, `${path}/status`, {})
      assert.equal(off.location, `${path}?done=deactivated`)
      assert.equal((await send({ email: 'ada@example.com' })).status, 403)
      assert.equal(
        (await owner.submit(path, `${path}/delete`, {})).location,
        '/settings/webhooks/incoming?done=removed',
      )
      assert.equal((await owner.get(path)).status, 404)
    })

    it('shows why the polls of a source fail', async () => {
      const { body } = await suite.api.request('POST', '/v1/webhooks/incoming', { body: { name: 'Feed' } })
      // As if it had been polled: no worker polls it, because it is not due.
      await suite.db
        .system('incoming_webhooks')
        .where({ id: body.id })
        .update({ poll_problem: 'the source answered 401 <b>' })
      for (const path of ['/settings/webhooks/incoming', `/settings/webhooks/incoming/${body.id}`])
        assert.match((await owner.get(path)).html, /the source answered 401 &lt;b/)
    })
  })
})
