import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

describe('a batch', () => {
  const suite = withApi()
  beforeEach(async () => {
    for (const table of ['contacts', 'companies', 'record_history', 'events'])
      await suite.db.system(table).delete()
  })

  const send = (entity: string, body: unknown, headers: Record<string, string> = {}, key = suite.api.key) =>
    suite.api.request('POST', `/v1/objects/${entity}/batch`, { body, headers, key })
  const contacts = (operations: unknown[], rest: object = {}) => send('contacts', { operations, ...rest })
  const create = async (entity: string, body: object) =>
    (await suite.api.request('POST', `/v1/objects/${entity}`, { body })).body
  const count = async (table: string) => Number((await suite.db.system(table).count())[0]!.count)

  it('runs the operations in order, with the same results as single requests', async () => {
    const ada = await create('contacts', { first_name: 'Ada', email: 'ada@example.com' })
    const bob = await create('contacts', { first_name: 'Bob' })
    const { status, body } = await contacts([
      { op: 'create', data: { first_name: 'Cyd', phone: '+41 44 668 18 00' } },
      { op: 'create', data: { first_name: 'Dan' } },
      { op: 'update', id: ada.id, version: 1, data: { last_name: 'Lovelace' } },
      { op: 'upsert', by: 'email', data: { email: 'ADA@example.com', job_title: 'Countess' } },
      { op: 'upsert', by: 'email', data: { email: 'eve@example.com' } },
      { op: 'delete', id: bob.id },
      { op: 'update', id: bob.id, data: { last_name: 'Gone' } },
    ])
    assert.equal(status, 200)
    assert.deepEqual([body.object, body.atomic, body.succeeded, body.failed], ['batch', false, 6, 1])
    assert.deepEqual(
      body.results.map((one: { index: number; op: string; status: number }) => [
        one.index,
        one.op,
        one.status,
      ]),
      [
        [0, 'create', 201],
        [1, 'create', 201],
        [2, 'update', 200],
        [3, 'upsert', 200],
        [4, 'upsert', 201],
        [5, 'delete', 200],
        [6, 'update', 404],
      ],
    )
    assert.equal(body.results[0].record.phone, '+41446681800')
    assert.equal(body.results[3].id, ada.id)
    const read = await suite.api.request('GET', `/v1/objects/contacts/${ada.id}`)
    assert.deepEqual(read.body, body.results[3].record)
    assert.deepEqual(
      [read.body.version, read.body.last_name, read.body.job_title],
      [3, 'Lovelace', 'Countess'],
    )
    assert.equal(body.results[5].deleted, true)
    assert.deepEqual(Object.keys(body.results[6].error).sort(), ['doc_url', 'message', 'request_id', 'type'])
    assert.equal(await count('events'), 8)
    assert.equal(await count('record_history'), 8)
  })

  it('runs the other operations if one fails, and reports the issues of each', async () => {
    await create('contacts', { first_name: 'Old', external_id: 'x' })
    const { status, body } = await contacts([
      { op: 'create', data: { first_name: 'A' } },
      { op: 'create', data: { first_name: 'B' } },
      { op: 'create', data: { first_name: 'C', external_id: 'x' } },
      { op: 'create', data: { email: 'no', lead_status: 'maybe', nickname: 'D' } },
      { op: 'update', id: '1', version: 0, data: { tags: 'vip' } },
      { op: 'replace', data: {} },
      'nonsense',
      { op: 'create', data: { first_name: 'E', company_id: crypto.randomUUID() } },
      { op: 'upsert', by: 'email', data: { first_name: 'F' } },
      { op: 'upsert', by: 'shoe_size', data: { first_name: 'G' } },
      { op: 'create', data: { first_name: 'H' } },
    ])
    assert.equal(status, 200)
    const statuses = body.results.map((one: { status: number }) => one.status)
    assert.deepEqual(statuses, [201, 201, 409, 422, 422, 422, 422, 422, 422, 422, 201])
    assert.equal(body.results[2].error.param, 'external_id')
    const locs = (index: number) =>
      body.results[index].detail.map(({ loc }: { loc: unknown[] }) => {
        assert.deepEqual(loc.slice(0, 3), ['body', 'operations', index])
        return loc.slice(3).join('.')
      })
    assert.deepEqual(locs(3).sort(), ['data.email', 'data.lead_status', 'data.nickname'])
    assert.deepEqual(locs(4).sort(), ['data.tags', 'id', 'version'])
    assert.deepEqual(locs(5), ['op'])
    assert.deepEqual(locs(6), [''])
    assert.deepEqual(locs(7), ['data.company_id'])
    assert.deepEqual(locs(8), ['data.email'])
    assert.deepEqual(locs(9), ['by'])
    assert.deepEqual([body.results[4].op, body.results[5].op], ['update', null])
    assert.equal(await count('contacts'), 4)
  })

  it('writes nothing if an operation of an atomic batch fails, and names it', async () => {
    await create('contacts', { first_name: 'Old', external_id: 'x' })
    const operations = [
      { op: 'create', data: { first_name: 'A' } },
      { op: 'create', data: { first_name: 'B' } },
      { op: 'create', data: { first_name: 'C', external_id: 'x' } },
      { op: 'create', data: { first_name: 'D' } },
    ]
    const { status, body } = await contacts(operations, { atomic: true })
    assert.equal(status, 422)
    assert.equal(body.error.type, 'validation_error')
    assert.equal(body.error.param, 'operations[2]')
    assert.match(body.error.message, /operation 2: another contact has the external_id x/)
    assert.deepEqual(body.detail[0].loc, ['body', 'operations', 2, 'data', 'external_id'])
    for (const table of ['contacts', 'events', 'record_history']) assert.equal(await count(table), 1, table)

    operations[2]!.data = { first_name: 'C' }
    const done = await contacts(operations, { atomic: true })
    assert.deepEqual([done.status, done.body.succeeded, done.body.failed], [200, 4, 0])
  })

  it('reports all invalid operations of an atomic batch', async () => {
    const { status, body } = await contacts(
      [
        { op: 'create', data: { email: 'no' } },
        { op: 'create', data: { first_name: 'A' } },
        { op: 'delete', id: 'x' },
      ],
      { atomic: true },
    )
    assert.equal(status, 422)
    assert.deepEqual(
      body.detail.map(({ loc }: { loc: unknown[] }) => loc.join('.')),
      ['body.operations.0.data.email', 'body.operations.2.id'],
    )
  })

  it('lists the candidates of an upsert that matches several records', async () => {
    for (const first_name of ['A', 'B']) await create('contacts', { first_name, email: 'a@example.com' })
    const operations = [{ op: 'upsert', by: 'email', data: { email: 'a@example.com' } }]
    const { body } = await contacts(operations)
    assert.deepEqual([body.results[0].status, body.results[0].error.candidates.length], [409, 2])
    const atomic = await contacts(operations, { atomic: true })
    assert.equal(atomic.body.error.candidates.length, 2)
  })

  it('upserts a company by domain without its required fields, unless it must be created', async () => {
    await create('companies', { name: 'Acme', domain: 'acme.example' })
    const { body } = await send('companies', {
      operations: [
        { op: 'upsert', by: 'domain', data: { domain: 'https://www.acme.example/', industry: 'Anvils' } },
        { op: 'upsert', by: 'domain', data: { domain: 'other.example', industry: 'Anvils' } },
      ],
    })
    assert.deepEqual(
      body.results.map(({ status }: { status: number }) => status),
      [200, 422],
    )
    assert.deepEqual(body.results[1].detail[0].loc, ['body', 'operations', 1, 'data', 'name'])
  })

  it('creates one record from 20 concurrent upserts of one email', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        contacts([{ op: 'upsert', by: 'email', data: { email: i % 2 ? 'A@b.example' : 'a@B.example' } }]),
      ),
    )
    const statuses = answers.map(({ body }) => body.results[0].status).sort()
    assert.deepEqual(statuses, [...Array(19).fill(200), 201])
    assert.equal(await count('contacts'), 1)
  })

  it('creates one record from 12 concurrent upserts by different keys', async () => {
    await suite.api.request('POST', '/v1/custom-fields/contacts', {
      body: { name: 'crm_id', type: 'text', unique: true },
    })
    for (const other of ['external_id', 'custom_fields.crm_id'])
      for (let round = 0; round < 4; round++) {
        const key = `${other}-${round}`
        const data = {
          email: `${key}@x.example`,
          ...(other === 'external_id' ? { external_id: key } : { custom_fields: { crm_id: key } }),
        }
        const answers = await Promise.all(
          Array.from({ length: 12 }, (_, i) =>
            contacts([{ op: 'upsert', by: i % 2 ? 'email' : other, data }]),
          ),
        )
        assert.deepEqual(answers.map(({ body }) => body.results[0].status).sort(), [
          ...Array(11).fill(200),
          201,
        ])
      }
    await suite.api.request('DELETE', '/v1/custom-fields/contacts/crm_id')
  })

  it('links the record of an upsert, and reports invalid associations', async () => {
    const { id } = await create('contacts', { first_name: 'Ada' })
    const upsert = (object: string, body: string) => ({
      op: 'upsert',
      by: 'external_id',
      data: { external_id: 'n', body, associations: [{ object, id, label: 'about' }] },
    })
    const operations = [
      upsert('contacts', 'Hello'),
      upsert('contact', 'Hello again'),
      upsert('deal', 'Hello'),
    ]
    const { body } = await send('notes', { operations })
    const [made, found, lost] = body.results
    assert.deepEqual([made.status, found.status, found.id], [201, 200, made.id])
    assert.deepEqual(
      [lost.status, lost.detail[0].loc],
      [422, ['body', 'operations', 2, 'data', 'associations', 0, 'id']],
    )
    const notes = (await suite.api.request('GET', `/v1/objects/contacts/${id}/notes`)).body
    assert.deepEqual(
      notes.data.map((note: { body: string; association: object }) => [note.body, note.association]),
      [['Hello again', { ...notes.data[0].association, label: 'about' }]],
    )
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['notes:write'] })
    assert.equal((await send('notes', { operations: [operations[1]] }, {}, key)).status, 403)
  })

  it('upserts by a unique custom field, in any form of its value', async () => {
    const definition = { name: 'badge', type: 'phone', label: 'Badge', unique: true }
    await suite.api.request('POST', '/v1/custom-fields/contacts', { body: definition })
    const upsert = (badge: string, rest: object = {}) => ({
      op: 'upsert',
      by: 'custom_fields.badge',
      data: { first_name: 'A', custom_fields: { badge }, ...rest },
    })
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => contacts([upsert(i % 2 ? '+41446681800' : '+41 44 668 18 00')])),
    )
    assert.deepEqual(answers.map(({ body }) => body.results[0].status).sort(), [...Array(9).fill(200), 201])
    const { body } = await contacts([
      upsert('+41 44 668 18 00', { last_name: 'B' }),
      upsert('+41446681800', { job_title: 'C' }),
      { op: 'upsert', by: 'custom_fields.tier', data: { custom_fields: { tier: 'gold' } } },
      { op: 'upsert', by: 'custom_fields.badge', data: { first_name: 'D' } },
      { op: 'create', data: { first_name: 'E', custom_fields: { badge: '+41446681800' } } },
    ])
    assert.deepEqual(
      body.results.map(({ status }: { status: number }) => status),
      [200, 200, 422, 422, 409],
    )
    assert.equal(body.results[1].record.last_name, 'B')
    const locs = body.results.map(({ detail }: { detail?: { loc: unknown[] }[] }) =>
      detail?.[0]?.loc.slice(3),
    )
    assert.deepEqual(locs[2], ['by'])
    assert.deepEqual(locs[3], ['data', 'custom_fields', 'badge'])
    assert.equal(await count('contacts'), 1)
  })

  it('runs once with an Idempotency-Key', async () => {
    const body = { operations: [{ op: 'create', data: { first_name: 'A' } }] }
    const headers = { 'Idempotency-Key': 'once' }
    const first = await send('contacts', body, headers)
    const second = await send('contacts', body, headers)
    assert.deepEqual(second.body, first.body)
    assert.equal(second.headers.get('idempotency-replayed'), 'true')
    assert.equal(await count('contacts'), 1)
  })

  it('writes nothing if its connection is lost, and the retry runs it', async () => {
    await create('contacts', { email: 'held@example.com' })
    const body = {
      operations: [
        { op: 'create', data: { first_name: 'A' } },
        { op: 'create', data: { first_name: 'B' } },
        { op: 'upsert', by: 'email', data: { email: 'held@example.com', first_name: 'C' } },
      ],
    }
    const headers = { 'Idempotency-Key': 'lost' }
    const admin = new pg.Client({ connectionString: suite.db.url })
    await admin.connect()
    await admin.query('begin; select from contacts for update')
    const sent = send('contacts', body, headers)
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock'`
    for (let cuts = 0; cuts === 0; cuts = (await admin.query(cut)).rowCount!) await sleep(20)
    assert.equal((await sent).status, 503)
    await admin.end()
    assert.deepEqual([await count('contacts'), await count('events')], [1, 1])
    const retried = await send('contacts', body, headers)
    assert.deepEqual([retried.status, retried.body.succeeded], [200, 3])
    assert.deepEqual([await count('contacts'), await count('events')], [3, 4])
  })

  it('never deadlocks with a batch on the same records', async () => {
    const made = await contacts(
      Array.from({ length: 40 }, (_, i) => ({ op: 'create', data: { email: `${i}@example.com` } })),
    )
    const ids: string[] = made.body.results.map(({ id }: { id: string }) => id)
    const mixed = (order: string[], name: string) =>
      contacts(
        order.flatMap((id, i) => [
          { op: 'update', id, data: { first_name: `${name}${i}` } },
          { op: 'upsert', by: 'email', data: { email: `${i}@example.com`, last_name: name } },
        ]),
      )
    const answers = await Promise.all([
      mixed(ids, 'a'),
      mixed(ids.toReversed(), 'b'),
      mixed(ids, 'c'),
      mixed(ids.toReversed(), 'd'),
    ])
    for (const { status, body } of answers) assert.deepEqual([status, body.failed], [200, 0])
  })

  it('accepts 1 to 200 operations', async () => {
    const one = { op: 'create', data: { first_name: 'A' } }
    assert.equal((await contacts([])).status, 422)
    assert.equal((await contacts(Array(201).fill(one))).status, 422)
    const { status, body } = await contacts(Array(200).fill(one))
    assert.deepEqual([status, body.succeeded], [200, 200])
    assert.equal(
      (await send('contacts', { operations: [one], atomic: 'yes', mode: 1 })).body.detail.length,
      2,
    )
  })

  it('requires write on the kind', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, {
      scopes: ['contacts:read', 'companies:write'],
    })
    const body = { operations: [{ op: 'create', data: { first_name: 'A' } }] }
    const { status, body: answer } = await send('contacts', body, {}, key)
    assert.equal(status, 403)
    assert.match(answer.error.message, /contacts:write/)
  })

  it('requires write on the kinds that its operations link', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['contacts:write'] })
    const id = crypto.randomUUID()
    for (const operation of [
      { op: 'create', data: { first_name: 'A', company_id: id } },
      { op: 'create', data: { first_name: 'A', associations: [{ object: 'company', id }] } },
      { op: 'update', id, data: { company_id: null } },
      { op: 'upsert', by: 'email', data: { email: 'a@b.example', company_id: id } },
    ]) {
      const operations = [{ op: 'create', data: { first_name: 'B' } }, operation]
      const { status, body } = await send('contacts', { operations }, {}, key)
      assert.equal(status, 403)
      assert.match(body.error.message, /companies:write/)
    }
    assert.equal(await count('contacts'), 0)
  })
})
