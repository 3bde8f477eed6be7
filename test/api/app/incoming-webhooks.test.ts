import assert from 'node:assert/strict'
import { createOrganization } from '../../support/database.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('/app/webhooks/incoming', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming({ PUBLIC_URL: 'https://agx.example/' })
  })
  after(() => test?.close())

  const pathOf = (webhook: { id: string }) => `/webhooks/incoming/${webhook.id}`
  const ada = { email: 'ada@example.com' }

  it('a new webhook is Active, with defaults, a URL, and a secret that is returned only once', async () => {
    const { secret, ...webhook } = (await test.app('POST', '/webhooks/incoming', { name: 'Form' }, 201)).body
    assert.match(secret, /^whsec_/)
    assert.equal(webhook.url, `https://agx.example/webhooks/incoming/${webhook.id}`)
    assert.deepEqual(
      [webhook.status, webhook.rate_limit, webhook.target_entity, webhook.deduplication],
      ['Active', 60, 'Contact', { action: 'Update', by: 'email' }],
    )
    const { body } = await test.app('GET', pathOf(webhook))
    assert.deepEqual(body, { ...webhook, problem: null })
    const stored = await test.db.system('incoming_webhooks').where({ id: webhook.id }).first()
    assert.ok(!JSON.stringify(stored).includes(secret))
  })

  it('an update applies to the next request', async () => {
    const webhook = await test.createWebhook()
    const change = (values: object) => test.app('PATCH', pathOf(webhook), values)
    assert.equal((await test.send(webhook, ada)).status, 200)
    const { body } = await change({ name: 'New', ip_whitelist: '192.0.2.1\n10.0.0.0/8\n' })
    assert.deepEqual([body.name, body.ip_whitelist], ['New', ['192.0.2.1', '10.0.0.0/8']])
    assert.equal((await test.send(webhook, ada)).body.error, 'ip_not_allowed')
    await change({ ip_whitelist: [], target_entity: 'Company' })
    assert.equal((await test.send(webhook, { company: 'Engines' })).body.entity, 'company')
    await change({ status: 'Inactive' })
    assert.equal((await test.send(webhook, ada)).body.error, 'webhook_inactive')
    assert.equal((await test.app('POST', `${pathOf(webhook)}/activate`)).body.status, 'Active')
    assert.equal((await test.send(webhook, { company: 'Engines' })).status, 200)
  })

  it('invalid fields are refused with all issues', async () => {
    const { body } = await test.app(
      'POST',
      '/webhooks/incoming',
      { name: '', colour: 1, ip_whitelist: ['300.1.1.1'], target_entity: 'Invoice' },
      422,
    )
    const places = body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')).sort()
    assert.deepEqual(places, ['body.colour', 'body.ip_whitelist.0', 'body.name', 'body.target_entity'])
  })

  it('a rotated secret replaces the old one, at once or after the overlap', async () => {
    const webhook = await test.createWebhook()
    const rotate = async (values: object) =>
      (await test.app('POST', `${pathOf(webhook)}/rotate-secret`, values)).body.secret as string
    const sendWith = async (secret: string) => (await test.send({ ...webhook, secret }, ada)).status
    const second = await rotate({ overlap_hours: 1 })
    assert.deepEqual([await sendWith(webhook.secret), await sendWith(second)], [200, 200])
    await test.db
      .system('incoming_webhooks')
      .where({ id: webhook.id })
      .update({ previous_secret_expires_at: new Date() })
    assert.deepEqual([await sendWith(webhook.secret), await sendWith(second)], [401, 200])
    const third = await rotate({})
    assert.deepEqual([await sendWith(second), await sendWith(third)], [401, 200])
    const own = await rotate({ secret: 'given-by-the-sender' })
    assert.deepEqual([own, await sendWith(own)], ['given-by-the-sender', 200])
  })

  it('Standard Webhooks need a secret that is a key: on creation, rotation and change of the verification', async () => {
    const verification = { type: 'standard_webhooks' }
    const dots = '.'.repeat(16)
    const issueOf = async (method: string, path: string, body: object) => {
      const [issue] = (await test.app(method, path, body, 422)).body.detail
      return [issue.loc.join('.'), JSON.stringify(issue).includes(dots)]
    }
    const refused = { name: 'x', verification, secret: dots }
    assert.deepEqual(await issueOf('POST', '/webhooks/incoming', refused), ['body.secret', false])
    const standard = await test.createWebhook({ verification })
    assert.deepEqual(await issueOf('POST', `${pathOf(standard)}/rotate-secret`, { secret: dots }), [
      'body.secret',
      false,
    ])
    const plain = await test.createWebhook({ secret: dots })
    assert.deepEqual(await issueOf('PATCH', pathOf(plain), { verification }), [
      'body.verification.type',
      false,
    ])
    assert.equal((await test.app('GET', pathOf(plain))).body.verification.type, 'secret')
    await test.app('POST', `${pathOf(plain)}/rotate-secret`, {})
    await test.app('PATCH', pathOf(plain), { verification })
  })

  it('a test returns the mapped record without writing, also for an inactive webhook', async () => {
    const webhook = await test.createWebhook()
    await test.app('POST', `${pathOf(webhook)}/deactivate`)
    const tried = async (body: object, status?: number) =>
      (await test.app('POST', `${pathOf(webhook)}/test`, body, status)).body
    const good = await tried({ payload: { email: 'tried@example.com' } })
    assert.deepEqual([good.valid, good.entity], [true, 'contact'])
    assert.equal(good.mapped_data.fields.email, 'tried@example.com')
    const bad = await tried({ payload: '<a><email>x</email></a>', content_type: 'application/xml' })
    assert.deepEqual([bad.valid, Object.keys(bad.details)], [false, ['email']])
    await tried({ payload: '{"a":', content_type: 'application/json' }, 400)
    assert.equal((await test.logs(webhook)).length, 0)
    assert.equal((await test.db.system('contacts').where({ email: 'tried@example.com' })).length, 0)
  })

  it('a delete removes the webhook and its log, not its records', async () => {
    const webhook = await test.createWebhook()
    const { body } = await test.send(webhook, { email: 'stays@example.com' })
    assert.equal((await test.app('DELETE', pathOf(webhook))).body.deleted, true)
    assert.equal((await test.send(webhook, ada)).status, 404)
    await test.app('GET', `${pathOf(webhook)}/logs`, undefined, 404)
    await test.app('DELETE', pathOf(webhook), undefined, 404)
    assert.equal((await test.contact(body.record_id)).email, 'stays@example.com')
  })

  it('the list has the list envelope and cursors', async () => {
    const made = [await test.createWebhook(), await test.createWebhook()]
    const list = async (query: string, status?: number) =>
      (await test.app('GET', `/webhooks/incoming?${query}`, undefined, status)).body
    const first = await list('limit=1')
    assert.deepEqual(Object.keys(first).sort(), [
      'data',
      'has_more',
      'limit',
      'next_cursor',
      'object',
      'offset',
      'total',
      'total_is_estimate',
    ])
    const second = await list(`limit=1&cursor=${first.next_cursor}`)
    assert.deepEqual(
      [first, second].map(({ data }) => data[0].id),
      [made[1]!.id, made[0]!.id],
    )
    assert.equal((await list('limit=1&offset=1')).data[0].id, made[0]!.id)
    await list(`offset=1&cursor=${first.next_cursor}`, 400)
    await list('cursor=nonsense', 400)
    await list('limit=201', 422)
    await list('page=2', 422)
  })

  describe('the log', () => {
    let webhook: TestWebhook
    before(async () => {
      webhook = await test.createWebhook()
      for (const email of ['a@example.com', 'a@example.com', 'wrong', 'b@example.com'])
        await test.send(webhook, { email })
      await test.send({ ...webhook, secret: 'wrong' }, ada)
      await test.app('POST', `${pathOf(webhook)}/deactivate`)
      await test.send(webhook, ada)
    })
    const list = async (query: string, status?: number) =>
      (await test.app('GET', `${pathOf(webhook)}/logs?${query}`, undefined, status)).body
    const errors = ({ data }: { data: { error: string | null; action: string | null }[] }) =>
      data.map(({ error, action }) => error ?? action)

    it('lists the requests, newest first', async () => {
      assert.deepEqual(errors(await list('')), [
        'webhook_inactive',
        'invalid_secret',
        'Created',
        'validation_failed',
        'Updated',
        'Created',
      ])
    })

    it('filters by status, action, address and time', async () => {
      assert.deepEqual(errors(await list('status=Failed')), ['invalid_secret', 'validation_failed'])
      assert.deepEqual(errors(await list('status=Blocked')), ['webhook_inactive'])
      assert.deepEqual(errors(await list('action=Updated')), ['Updated'])
      assert.equal((await list('source_ip=127.0.0.1')).total, 6)
      assert.equal((await list('source_ip=192.0.2.1')).total, 0)
      const { data } = await list('')
      const after = encodeURIComponent(data[1].created_at)
      assert.deepEqual(errors(await list(`from=${after}&status=Failed`)), ['invalid_secret'])
      assert.equal((await list('to=2020-01-01T00:00:00Z')).total, 0)
      const today = data[0].created_at.slice(0, 10)
      const dayAfter = new Date(Date.parse(today) + 86_400_000).toISOString().slice(0, 10)
      assert.equal((await list(`from=${today}&to=${today}`)).total, 6)
      assert.equal((await list(`from=${dayAfter}`)).total, 0)
      await list('from=2026-02-30', 422)
      await list('status=Lost', 422)
      await list('from=yesterday', 422)
    })

    it('pages by cursors that are valid only with their filters', async () => {
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const page: { data: { id: string }[]; next_cursor: string | null; total: number } = await list(
          `limit=4${cursor ? `&cursor=${cursor}` : ''}`,
        )
        seen.push(...page.data.map(({ id }) => id))
        cursor = page.next_cursor
        if (cursor) await list(`status=Failed&cursor=${cursor}`, 400)
      } while (cursor)
      assert.equal(new Set(seen).size, 6)
    })

    it('shows the result of an entry', async () => {
      const [entry] = (await list('action=Updated')).data
      const { body } = await test.app('GET', `${pathOf(webhook)}/logs/${entry.id}`)
      assert.deepEqual(body.result, {
        success: true,
        message: 'contact updated',
        entity: 'contact',
        action: 'updated',
        record_id: entry.record_id,
      })
    })

    it('shows the error of an entry', async () => {
      const [, entry] = (await list('status=Failed')).data
      const { body } = await test.app('GET', `${pathOf(webhook)}/logs/${entry.id}`)
      assert.deepEqual(Object.keys(body.error_details), ['email'])
      assert.deepEqual(
        [body.result.success, body.result.error, body.result.message],
        [false, 'validation_failed', 'the payload does not map to a valid record'],
      )
      await test.app('GET', `${pathOf(webhook)}/logs/${crypto.randomUUID()}`, undefined, 404)
      await test.app('GET', `${pathOf(await test.createWebhook())}/logs/${entry.id}`, undefined, 404)
    })
  })

  it('members can read, admins can write; keys and other organizations are refused', async () => {
    const webhook = await test.createWebhook()
    const call = async (headers: Record<string, string>, method: string, path: string, body?: object) =>
      (await test.api.request(method, `/app${path}`, { key: null, headers, ...(body ? { body } : {}) }))
        .status
    const member = await test.signIn('member')
    const admin = await test.signIn('admin')
    for (const path of ['/webhooks/incoming', pathOf(webhook), `${pathOf(webhook)}/logs`])
      assert.equal(await call(member, 'GET', path), 200)
    const changes: [string, string, object?][] = [
      ['PATCH', pathOf(webhook), { name: 'x' }],
      ['POST', `${pathOf(webhook)}/deactivate`],
      ['POST', `${pathOf(webhook)}/activate`],
      ['POST', `${pathOf(webhook)}/rotate-secret`, {}],
      ['POST', `${pathOf(webhook)}/test`, { payload: {} }],
      ['POST', '/webhooks/incoming', { name: 'x' }],
      ['DELETE', pathOf(webhook)],
    ]
    for (const [method, path, body] of changes)
      assert.equal(await call(member, method, path, body), 403, `${method} ${path}`)
    const elsewhere = await createOrganization(test.db)
    await test.db.system('incoming_webhooks').insert({
      ...(await test.db.system('incoming_webhooks').where({ id: webhook.id }).first('secret_sealed')),
      organization_id: elsewhere,
      id: crypto.randomUUID(),
      name: 'Theirs',
      rate_limit: 1,
      verification: '{}',
      target_entity: 'Contact',
      field_mapping: '{}',
      deduplication: '{}',
    })
    const theirs = await test.db.system('incoming_webhooks').where({ organization_id: elsewhere }).first('id')
    assert.equal(await call(admin, 'GET', pathOf(theirs)), 404)
    assert.equal(await call(admin, 'DELETE', pathOf(theirs)), 404)
    for (const [method, path, body] of changes)
      assert.ok((await call(admin, method, path, body)) < 300, `${method} ${path}`)
    const { status } = await test.api.request('GET', '/app/webhooks/incoming')
    assert.equal(status, 401)
  })
})
