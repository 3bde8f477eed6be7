import assert from 'node:assert/strict'
import type { Scope } from '../../../db/model/access/scopes.ts'
import type { Issue } from '../../../db/model/errors.ts'
import { type KindName, referencesOf } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { createKey, startApi } from '../../support/api.ts'
import { createMember, createTestDatabase } from '../../support/database.ts'
import { exampleOf, ownersOf } from '../../support/example-of.ts'
import { withApi } from '../../support/with-api.ts'

const NOBODY = '01900000-0000-7000-8000-000000000000'

describe('/v1/objects', () => {
  const suite = withApi()

  const keyFor = async (...scopes: Scope[]) =>
    (await createKey(suite.db, suite.api.organizationId, { scopes })).key
  const post = (path: string, body: unknown, key?: string) =>
    suite.api.request('POST', `/v1/objects/${path}`, { body, ...(key ? { key } : {}) })
  const patch = (path: string, body: unknown, key?: string) =>
    suite.api.request('PATCH', `/v1/objects/${path}`, { body, ...(key ? { key } : {}) })
  const get = (path: string, key?: string) =>
    suite.api.request('GET', `/v1/objects/${path}`, key ? { key } : {})

  const create = async (kind: KindName, values: object) => (await post(kind, values)).body

  for (const kind of kindNames) {
    const { object, fields } = kinds[kind]

    it(`${kind}: creates, reads, updates, lists and deletes`, async () => {
      const created = await post(kind, await exampleOf(kind, create))
      assert.deepEqual([created.status, created.body.object], [201, object])
      assert.equal(created.headers.get('etag'), '"1"')
      const path = `${kind}/${created.body.id}`
      // Another record of these tests may have its domain.
      const { warnings: _, ...record } = created.body
      assert.deepEqual((await get(path)).body, record)
      const changed = await patch(path, { tags: [object] })
      assert.deepEqual([changed.status, changed.body.version], [200, 2])
      const listed = await get(`${kind}?tags[has]=${object}`)
      assert.deepEqual(listed.body.data, [changed.body])
      const deleted = await suite.api.request('DELETE', `/v1/objects/${path}`)
      assert.deepEqual([deleted.status, deleted.body.deleted], [200, true])
      assert.equal((await get(path)).status, 404)
    })

    it(`${kind}: reports the issues of all fields`, async () => {
      const bad = Object.fromEntries(Object.keys(fields).map((name) => [name, { no: 'such' }]))
      const { status, body } = await post(kind, bad)
      assert.equal(status, 422)
      const named = new Set(body.detail.map(({ loc }: { loc: string[] }) => loc[1]))
      assert.deepEqual([...named].sort(), Object.keys(fields).sort())
      for (const { loc, type } of body.detail)
        if (fields[loc[1]]!.readOnly && !fields[loc[1]]!.backdated) assert.equal(type, 'read_only', loc[1])
    })

    it(`${kind}: names missing required fields`, async () => {
      const required = Object.keys(fields).filter((name) => fields[name]!.required)
      const { status, body } = await post(kind, {})
      assert.deepEqual([status, body.detail[0].type], [422, 'missing'])
      if (required.length === 1) assert.equal(body.error.message, `${required[0]}: required`)
      const missing = body.detail.map(({ loc }: { loc: string[] }) => loc[1])
      if (required.length > 0) assert.deepEqual(missing.sort(), required.sort())
    })

    it(`${kind}: lists the accepted values for an invalid filter`, async () => {
      for (const [name, { values }] of Object.entries(fields)) {
        if (!values) continue
        const { status, body } = await get(`${kind}?${name}[in]=${values[0]!.toUpperCase()},nothing`)
        assert.deepEqual(
          [status, body.detail[0].loc, body.detail[0].input],
          [422, ['query', `${name}[in]`], 'nothing'],
        )
        assert.equal(body.error.hint, `values are ${values.join(', ')}`)
        assert.equal((await get(`${kind}?${name}=${values[0]!.toUpperCase()}`)).status, 200)
      }
    })

    for (const [name, { to, required }] of referencesOf(kinds[kind]))
      if (to !== kind)
        it(`${kind}: requires write on ${to} to set or clear ${name}`, async () => {
          const example = await exampleOf(kind, create)
          const target = await create(to, await exampleOf(to, create))
          const key = await keyFor(`${kind}:write`, `${to}:read`)
          const refused = await post(kind, { ...example, [name]: target.id }, key)
          assert.deepEqual([refused.status, refused.body.error.type], [403, 'insufficient_scope'])
          assert.match(refused.body.error.message, new RegExp(`${to}:write`))
          const own = required
            ? await post(kind, example)
            : await post(kind, { ...example, [name]: null }, key)
          assert.equal(own.status, 201)
          for (const value of required ? [target.id] : [target.id, null])
            assert.equal((await patch(`${kind}/${own.body.id}`, { [name]: value }, key)).status, 403)
          const both = await keyFor(`${kind}:write`, `${to}:write`)
          const set = await patch(`${kind}/${own.body.id}`, { [name]: target.id }, both)
          assert.deepEqual([set.status, set.body[name]], [200, target.id])
        })

    for (const [name, { to, required }] of referencesOf(kinds[kind]))
      if (required)
        it(`${kind}: always have ${name}`, async () => {
          const example = await exampleOf(kind, create)
          for (const given of [null, '', undefined]) {
            const { status, body } = await post(kind, { ...example, [name]: given })
            assert.deepEqual([status, body.detail[0].loc], [422, ['body', name]])
          }
          const { id } = await create(kind, example)
          for (const given of [null, '']) {
            const { status, body } = await patch(`${kind}/${id}`, { [name]: given })
            assert.deepEqual([status, body.detail[0].loc], [422, ['body', name]])
          }
          const path = `/v1/objects/${kind}/${id}/associations/${to}/${example[name]}`
          const unlinked = await suite.api.request('DELETE', path)
          assert.equal(unlinked.status, 422)
          assert.match(unlinked.body.error.message, /cannot be without its/)
          assert.equal((await get(`${kind}/${id}`)).body[name], example[name])
        })
  }

  it('returns a record created with associations at version 1, as a read does', async () => {
    const company = await post('companies', { name: 'Acme' })
    const associations = [{ object: 'company', id: company.body.id, label: 'works for' }]
    const made = await post('contacts', { first_name: 'Ada', associations })
    assert.deepEqual([made.status, made.body.version], [201, 1])
    assert.deepEqual([made.body.company_id, made.headers.get('etag')], [company.body.id, '"1"'])
    assert.deepEqual((await get(`contacts/${made.body.id}`)).body, made.body)
  })

  it('executes with the same Idempotency-Key after a missing scope is granted', async () => {
    const company = await post('companies', { name: 'Acme' })
    const request = {
      body: { first_name: 'Ada', company_id: company.body.id },
      headers: { 'Idempotency-Key': 'before-the-scope' },
    }
    const key = await keyFor('contacts:write')
    const refused = await suite.api.request('POST', '/v1/objects/contacts', { ...request, key })
    const granted = await suite.api.request('POST', '/v1/objects/contacts', request)
    assert.deepEqual([refused.status, granted.status], [403, 201])
  })

  it('executes with the same Idempotency-Key after a 412 or 404 is resolved', async () => {
    const { body: contact } = await post('contacts', { first_name: 'Ada' })
    const path = `/v1/objects/contacts/${contact.id}`
    const change = (version: string) =>
      suite.api.request('PATCH', path, {
        body: { job_title: 'Analyst' },
        headers: { 'Idempotency-Key': 'cured', 'If-Match': version },
      })
    await suite.api.request('DELETE', path)
    assert.equal((await change('"2"')).status, 404)
    const restored = await suite.api.request('POST', `${path}/restore`)
    assert.equal((await change('"1"')).status, 412)
    const done = await change(restored.headers.get('etag')!)
    assert.deepEqual([done.status, done.body.job_title], [200, 'Analyst'])
    const again = await change(restored.headers.get('etag')!)
    assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true'])
  })

  it('reports the position of an invalid association label, and keeps a valid one', async () => {
    const contact = await post('contacts', { first_name: 'Ada' })
    const task = await post('tasks', { title: 'Call' })
    const path = `contacts/${contact.body.id}/associations/tasks/${task.body.id}`
    const { status, body } = await post(path, { label: 5 })
    assert.deepEqual([status, body.detail[0].loc], [422, ['body', 'label']])
    const linked = await post(path, { label: 'about', urgent: true })
    assert.deepEqual([linked.body.label, linked.body.properties], ['about', { urgent: true }])
    const { label, properties } = (await post(path, { label: null, urgent: false })).body
    assert.deepEqual([label, properties], [null, { urgent: false }])
    const related = await get(`tasks/${task.body.id}/contacts?q=ada&sort=first_name&fields=first_name`)
    assert.deepEqual(related.body.data, [{ object: 'contact', id: contact.body.id, first_name: 'Ada' }])
  })

  it('shows the association in the lists of both ends; with `fields`, only if they name it', async () => {
    const contact = await post('contacts', { first_name: 'Ada' })
    const deal = await post('deals', { name: 'Engine' })
    const path = `contacts/${contact.body.id}/associations/deals/${deal.body.id}`
    const linked = (await post(path, { label: 'Board member', since: 2020 })).body
    const { label, properties, created_at } = linked
    assert.deepEqual([label, properties], ['Board member', { since: 2020 }])
    for (const [end, id] of [
      [`deals/${deal.body.id}/contacts`, contact.body.id],
      [`contacts/${contact.body.id}/deals`, deal.body.id],
    ]) {
      const [whole] = (await get(end)).body.data
      assert.deepEqual([whole.id, whole.association], [id, { label, properties, created_at }])
      const [narrow] = (await get(`${end}?fields=id,association`)).body.data
      assert.deepEqual(narrow, { object: whole.object, id, association: whole.association })
    }
    assert.equal((await get('contacts?fields=association')).status, 422)
  })

  it('asks for the scope of the kind that a filter reads, wherever filters are sent', async () => {
    const key = await keyFor('contacts:write')
    const query = { 'associations.deals[is_null]': 'true' }
    const calls: [string, string, object?][] = [
      ['GET', '/v1/objects/contacts?associations.deals[is_null]=true'],
      ['GET', `/v1/objects/contacts?last_activity_at[not_since]=last_30_days`],
      [
        'GET',
        '/v1/objects/contacts/019a0000-0000-7000-8000-000000000001/contacts?associations.deals[is_null]=true',
      ],
      ['POST', '/v1/exports', { entity: 'contacts', query }],
      ['POST', '/v1/views', { entity: 'contacts', name: 'Without a deal', query }],
      ['POST', '/v1/objects/contacts/bulk', { action: 'delete', query }],
    ]
    for (const [method, path, body] of calls) {
      const answer = await suite.api.request(method, path, { key, ...(body && { body }) })
      assert.deepEqual([answer.status, answer.body.error.type], [403, 'insufficient_scope'], path)
      assert.match(answer.body.error.message, /lacks the scope (deals|activities):read$/)
    }
    const view = await suite.api.request('POST', '/v1/views', {
      key,
      body: { entity: 'contacts', name: 'All' },
    })
    assert.equal(
      (await suite.api.request('PATCH', `/v1/views/${view.body.id}`, { key, body: { query } })).status,
      403,
    )
    const wider = await keyFor('contacts:read', 'deals:read', 'activities:read')
    for (const [method, path] of calls.slice(0, 2))
      assert.equal((await suite.api.request(method, path, { key: wider })).status, 200)
  })

  it('suggests a correction for an invalid value', async () => {
    for (const [entity, body, loc, message] of [
      ['tasks', { title: 'x', due_at: '2026-02-30' }, 'due_at', /valid.*2026-01-31T09:00:00Z/],
      ['tasks', { title: 'x', due_at: '2026-01-31T25:00:00' }, 'due_at', /without an offset it is in/],
      ['deals', { name: 'x', expected_close_date: '2026-02-30' }, 'expected_close_date', /valid.*2026-01-31/],
      ['deals', { name: 'x', amount: true }, 'amount', /decimal such as "1250.00"/],
      ['deals', { name: 'x', amount: '99999999999999999999' }, 'amount', /at most 16 digits/],
      ['notes', { body: 'x', custom_fields: { 'a b': 1 } }, 'custom_fields.a b', /lower-case letters/],
    ] as const) {
      const refused = await post(entity, body)
      assert.deepEqual([refused.status, refused.body.detail[0].loc.slice(1).join('.')], [422, loc])
      assert.match(refused.body.detail[0].msg, message)
    }
  })

  it('refuses numbers that JSON has rounded, with the hint to send a string', async () => {
    const { body: defined } = await suite.api.request('POST', '/v1/custom-fields/deals', {
      body: { name: 'size', type: 'number' },
    })
    assert.equal(defined.object, 'custom_field')
    for (const [field, number] of [
      ['amount', '9007199254740993'],
      ['amount', '1234567890123456.78'],
      ['amount', '-1234567890123456.78'],
      ['amount', '1234567890123456.12'],
      ['amount', '1234567890123456'],
      ['amount', '999999999999999.99'],
      ['amount', '999999999999999.01'],
      ['amount', '-140737488355328.01'],
      ['amount', '1e21'],
      ['custom_fields.serial', '123456789012345678901234567890'],
      ['custom_fields.serial', '-9007199254740993'],
      ['custom_fields.serial', '1e999'],
      ['custom_fields.size', '9007199254740993'],
    ] as const) {
      const [outer, inner] = field.split('.')
      const value = inner ? `{"${inner}": ${number}}` : number
      const { status, body } = await post('deals', `{"name": "m", "${outer}": ${value}}`)
      assert.deepEqual([status, body.detail?.[0].loc.slice(1).join('.')], [422, field], number)
      assert.match(body.error.hint, /^send it as a string/, number)
    }
    const fields = (custom_fields: string) =>
      post('deals', `{"name": "m", "custom_fields": ${custom_fields}}`)
    const number = await fields('{"size": 9007199254740993}')
    assert.match(number.body.error.hint, /unless its definition has the type number$/)
    assert.equal((await fields('{"size": "9007199254740993"}')).status, 422)
    const free = await fields('{"serial": "9007199254740993"}')
    assert.deepEqual(free.body.custom_fields, { serial: '9007199254740993' })
    for (const [number, kept] of [
      ['99999999999999', '99999999999999.00'],
      ['1234567890123.45', '1234567890123.45'],
      ['-0.000001', '-0.000001'],
      ['0.00000001', '0.00000001'],
      ['-0.00000012', '-0.00000012'],
      ['"1234567890123456.78"', '1234567890123456.78'],
      ['"9007199254740993"', '9007199254740993.00'],
    ]) {
      const { body } = await post('deals', `{"name": "m", "amount": ${number}}`)
      assert.equal(body.amount, kept)
    }
    for (const number of ['0.000000001', '1.5e-8', '1e-25']) {
      const { status } = await post('deals', `{"name": "m", "amount": ${number}}`)
      assert.equal(status, 422, number)
    }
  })

  it('suggests a field for an unknown one', async () => {
    const { status, body } = await post('contacts', { first_name: 'Ada', emial: 'ada@example.com', zebra: 1 })
    const found = body.detail.map(({ loc, msg, type, hint }: Issue) => [loc[1], msg, type, hint])
    assert.equal(status, 422)
    assert.deepEqual(found, [
      ['emial', 'unknown field', 'unrecognized_key', 'did you mean email?'],
      ['zebra', 'unknown field', 'unrecognized_key', undefined],
    ])
  })

  it('answers a body with many unknown fields quickly, and lists only some of them', async () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`emial${i}`, i]))
    for (const body of [many, { first_name: 'Ada', custom_fields: many }, { custom_fields: many }]) {
      const refused = await post('contacts', body)
      assert.equal(refused.status, 422)
      assert.ok(refused.body.detail.length <= 101, String(refused.body.detail.length))
    }
    const { body: named } = await post('contacts', { first_name: 'Ada', ...many })
    assert.deepEqual(
      named.detail
        .slice(-2)
        .map(({ loc, msg }: { loc: string[]; msg: string }) => `${loc.join('.')}: ${msg}`),
      ['body.emial9: unknown field', 'body: has more unknown fields, which are not listed'],
    )
    const capitals = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`K${i}`, i]))
    const { body } = await post('contacts', { first_name: 'Ada', custom_fields: capitals })
    assert.equal(body.error.message, 'custom_fields: has more than 200 fields')
  })

  it('explains how to encode the offset of a time in a URL', async () => {
    const { status, body } = await get('contacts?created_at[gte]=2026-01-31T10:00:00+01:00')
    assert.equal(status, 422)
    assert.match(body.detail[0].msg, /%2B/)
    assert.equal((await get('contacts?created_at[gte]=2026-01-31T10:00:00%2B01:00')).status, 200)
  })

  it('refuses an empty cursor', async () => {
    const { status, body } = await get('contacts?cursor=')
    assert.deepEqual([status, body.error.param], [400, 'cursor'])
  })

  it('refuses an owner who is not a member, with the path of the members', async () => {
    const { status, body } = await post('notes', { body: 'Hello', owner_id: NOBODY })
    assert.deepEqual([status, body.detail[0].loc], [422, ['body', 'owner_id']])
    assert.match(body.error.hint, /\/v1\/users/)
    const owner = await createMember(suite.db, suite.api.organizationId)
    assert.equal((await post('notes', { body: 'Hello', owner_id: owner })).status, 201)
  })

  it('lists the kinds with the permissions of the key', async () => {
    const key = await keyFor('deals:read', 'notes:write')
    const { status, body } = await suite.api.request('GET', '/v1/objects', { key })
    assert.equal(status, 200)
    assert.deepEqual(
      body.data.map(({ entity }: { entity: string }) => entity),
      kindNames,
    )
    for (const { entity, singular, field_count, paths, permissions } of body.data) {
      assert.equal(singular, kinds[entity as 'notes'].object)
      const schema = await suite.api.request('GET', paths.schema)
      assert.equal(schema.body.fields.length, field_count)
      assert.equal((await suite.api.request('GET', paths.records)).status, 200)
      const write = entity === 'notes'
      assert.deepEqual(permissions, { read: write || entity === 'deals', write })
    }
  })

  it('describes exactly the fields that the records of a kind have', async () => {
    for (const kind of kindNames) {
      const { body } = await get(`${kind}/schema`)
      const record = await create(kind, { ...body.example, ...(await ownersOf(kind, create)) })
      const names = body.fields.map(({ name }: { name: string }) => name)
      assert.deepEqual(
        names.sort(),
        Object.keys(record)
          .filter((name) => name !== 'object' && name !== 'warnings')
          .sort(),
      )
      for (const field of body.fields) {
        const sorted = await get(
          `${kind}?sort=${field.type === 'custom_fields' ? 'custom_fields.x' : field.name}`,
        )
        assert.equal(sorted.status, field.sortable ? 200 : 422, field.name)
        const filtered = await get(`${kind}?${field.name}[is_null]=false`)
        const native = field.operators.includes('is_null') && field.type !== 'custom_fields'
        assert.equal(filtered.status, native ? 200 : 422, field.name)
        const written = await patch(`${kind}/${record.id}`, { [field.name]: record[field.name] })
        assert.equal(written.status, field.read_only ? 422 : 200, field.name)
      }
    }
  })

  it('describes the accepted values of a field', async () => {
    const { body } = await get('deals/schema')
    const field = (name: string) => body.fields.find((one: { name: string }) => one.name === name)
    assert.deepEqual(field('stage').values, kinds.deals.fields.stage!.values)
    assert.deepEqual(
      [field('stage').default, field('probability').max, field('name').max],
      ['lead', 100, 255],
    )
    assert.deepEqual([field('name').required, field('closed_at').read_only], [true, true])
    assert.deepEqual([field('company_id').references, field('owner_id').references], ['companies', 'users'])
    assert.deepEqual(body.upsert_keys, ['external_id'])
    assert.equal((await get('deals/schema', await keyFor('contacts:read'))).status, 403)
  })
})

describe('/v1/users', () => {
  it('lists only the members of the organization', async () => {
    const db = await createTestDatabase()
    const api = await startApi(db)
    try {
      const ids = []
      for (const name of ['Ada', 'Grace']) ids.push(await createMember(db, api.organizationId, name))
      const first = await api.request('GET', '/v1/users?limit=1')
      assert.deepEqual(first.body.data, [{ object: 'user', id: ids[0], name: 'Ada', role: 'member' }])
      assert.deepEqual([first.body.total, first.body.has_more], [2, true])
      const next = await api.request('GET', `/v1/users?limit=1&cursor=${first.body.next_cursor}`)
      assert.deepEqual([next.body.data[0].id, next.body.has_more], [ids[1], false])
      const other = await startApi(db)
      assert.deepEqual((await other.request('GET', '/v1/users')).body.data, [])
      const found = async (query: string) =>
        (await api.request('GET', `/v1/users?${query}`)).body.data.map(({ name }: { name: string }) => name)
      assert.deepEqual(await found('q=GRA'), ['Grace'])
      assert.deepEqual(await found('q=%25'), [])
      assert.deepEqual(await found(`email=${ids[0]!.toUpperCase()}@example.com`), ['Ada'])
      // A part of an address finds nobody: it would tell the address.
      assert.deepEqual(await found('email=example.com'), [])
      assert.deepEqual(await found('q=example.com'), [])
      await other.close()
    } finally {
      await api.close()
      await db.drop()
    }
  })
})
