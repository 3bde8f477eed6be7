import assert from 'node:assert/strict'
import fc from 'fast-check'
import pg from 'pg'
import type { Answer } from '../support/answer.ts'
import { createKey, startApi, type TestApi } from '../support/api.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

type Request = TestApi['request']

describe('exports', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    worker = await startWorker(db)
  })
  after(async () => {
    await worker?.stop()
    await api?.close()
    await db?.drop()
  })

  /** A client of a new organization. */
  async function client(): Promise<Request> {
    const { key } = await createKey(db, await createOrganization(db))
    return (method, path, options) => api.request(method, path, { key, ...options })
  }

  async function exported(request: Request, body: object): Promise<{ done: Answer['body']; file: string }> {
    const created = await request('POST', '/v1/exports', { body })
    assert.equal(created.status, 201, JSON.stringify(created.body))
    const done = await until(async () => {
      const { body } = await request('GET', `/v1/exports/${created.body.id}`)
      return body.ended_at ? body : undefined
    }, 'the end of the export')
    return { done, file: (await request('GET', `/v1/exports/${done.id}/file`)).body }
  }

  it('contain the records of the list, in its order, with the requested fields', async () => {
    const request = await client()
    for (const body of [
      {
        first_name: 'Ada',
        email: 'ada@x.example',
        tags: ['vip', 'a;b'],
        custom_fields: { tier: 'gold', n: 4 },
      },
      { first_name: '=cmd()', email: 'bob@x.example', phone: '+41446681800', address: { city: 'Zürich' } },
      { first_name: 'Cleo', email: 'cleo@x.example', lead_status: 'new' },
    ])
      assert.equal((await request('POST', '/v1/objects/contacts', { body })).status, 201)
    const query = { 'lead_status[is_null]': 'true', sort: 'email', order: 'desc' }
    const fields = ['first_name', 'phone', 'tags', 'address', 'custom_fields']
    const { done, file } = await exported(request, { entity: 'contacts', query, fields })
    assert.deepEqual([done.status, done.rows], ['completed', 2])
    const ids = file.match(/[0-9a-f-]{36}/g)!
    assert.equal(
      file,
      'id,first_name,phone,tags,address.line1,address.line2,address.city,address.state,address.postal_code,address.country,custom_fields.n,custom_fields.tier\r\n' +
        `${ids[0]},'=cmd(),+41446681800,,,,Zürich,,,,,\r\n` +
        `${ids[1]},Ada,,"[""vip"",""a;b""]",,,,,,,4,gold\r\n`,
    )
    assert.equal(done.bytes, Buffer.byteLength(file))
  })

  it('have names beside ids, and the separators of the locale or of the request', async () => {
    const request = await client()
    const post = async (path: string, body: object) => (await request('POST', path, { body })).body
    const company = await post('/v1/objects/companies', { name: 'Acme; Ltd' })
    const deal = await post('/v1/objects/deals', {
      name: 'One',
      amount: '1234.50',
      company_id: company.id,
      custom_fields: { rate: -1.5 },
    })
    await request('POST', '/v1/custom-fields/deals', { body: { name: 'rate', type: 'number' } })
    const fields = ['amount', 'company_id', 'owner_id', 'custom_fields.rate']
    const wanted = { entity: 'deals', fields, names: true }
    const head = 'id;amount;company_id;company_name;owner_id;owner_name;custom_fields.rate\r\n'
    const line = `${deal.id};1234,50;${company.id};"Acme; Ltd";;;-1,5\r\n`
    const { file } = await exported(request, { ...wanted, delimiter: ';', decimal: ',' })
    assert.equal(file, head + line)

    const me = (await request('GET', '/v1/me')).body
    const settings = JSON.stringify({ locale: 'de-DE' })
    await db.system('organizations').where({ id: me.organization.id }).update({ settings })
    const { file: local, done } = await exported(request, wanted)
    assert.deepEqual([local, done.delimiter, done.decimal], [head + line, ';', ','])
    const plain = await exported(request, { ...wanted, delimiter: ',', decimal: '.', names: false })
    assert.equal(plain.file.split('\r\n')[1], `${deal.id},1234.50,${company.id},,-1.5`)

    // The names of the file are no fields of their own.
    const imports = importsOf({ request })
    const again = await imports.run({ entity: 'deals', mode: 'upsert', by: 'id' }, local)
    assert.deepEqual([again.progress.skipped, again.progress.failed], [1, 0], JSON.stringify(again))

    const organizationId = me.organization.id
    const { key } = await createKey(db, organizationId, { scopes: ['deals:read'] })
    const refused = await api.request('POST', '/v1/exports', { key, body: wanted })
    assert.equal(refused.status, 403)
    assert.match(refused.body.error.message, /companies:read/)
  })

  it('may be of a view, and a workbook', async () => {
    const request = await client()
    for (const body of [
      { name: '=Bolt & <Co>', employee_count: 7 },
      { name: 'Acme', employee_count: 8 },
    ])
      assert.equal((await request('POST', '/v1/objects/companies', { body })).status, 201)
    const view = await request('POST', '/v1/views', {
      body: {
        entity: 'companies',
        name: 'Large',
        query: { 'employee_count[gte]': '7', sort: 'name', order: 'desc' },
        fields: ['name', 'employee_count'],
      },
    })
    const created = await request('POST', '/v1/exports', { body: { view_id: view.body.id, format: 'xlsx' } })
    assert.equal(created.status, 201, JSON.stringify(created.body))
    await until(async () => {
      const { body } = await request('GET', `/v1/exports/${created.body.id}`)
      return body.ended_at ?? undefined
    }, 'the end of the export')
    const file = await request('GET', `/v1/exports/${created.body.id}/file`)
    assert.match(file.headers.get('content-type') ?? '', /spreadsheetml/)
    const wrong = await request('POST', '/v1/exports', { body: { view_id: view.body.id, entity: 'deals' } })
    assert.equal(wrong.status, 422)
    assert.equal((await request('POST', '/v1/exports', { body: {} })).status, 422)
  })

  it('of any records can be imported as the same records', async () => {
    const source = await client()
    await source('POST', '/v1/custom-fields/contacts', { body: { name: 'score', type: 'number' } })
    await source('POST', '/v1/custom-fields/contacts', { body: { name: 'paid', type: 'boolean' } })
    await source('POST', '/v1/custom-fields/contacts', {
      body: { name: 'likes', type: 'multi_select', options: ['tea', 'coffee; black', 'a, b'] },
    })
    const text = fc
      .oneof(fc.string({ unit: 'grapheme' }), fc.stringMatching(/^['=+\-@"[\];,a1\n]{1,6}$/))
      .map((one) => one.trim().slice(0, 60).trim())
      .filter((one) => one !== '' && !/[\0\p{Surrogate}]/u.test(one))
    const contact = fc.record(
      {
        first_name: text,
        last_name: text,
        tags: fc.uniqueArray(text, { minLength: 1, maxLength: 3 }),
        do_not_contact: fc.boolean(),
        last_contacted_at: fc
          .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
          .map((date) => date.toISOString()),
        lifecycle_stage: fc.constantFrom('lead', 'mql', 'customer'),
        address: fc.record({ line1: text, city: text }),
        custom_fields: fc.record(
          {
            note: text,
            list: fc.array(text, { minLength: 1, maxLength: 3 }),
            score: fc.double({ noNaN: true, min: -1e9, max: 1e9 }).map((n) => Math.round(n * 100) / 100 + 0),
            paid: fc.boolean(),
            likes: fc.subarray(['tea', 'coffee; black', 'a, b'], { minLength: 1 }),
          },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: ['first_name'] },
    )
    const drawn = fc.sample(contact, { numRuns: 150, seed: Number(process.env.FAST_CHECK_SEED ?? 1) })
    for (const [i, one] of drawn.entries()) {
      const body = { external_id: `n-${i}`, email: `n${i}@x.example`, ...one }
      const created = await source('POST', '/v1/objects/contacts', { body })
      assert.equal(created.status, 201, JSON.stringify([body, created.body]))
    }
    const { file } = await exported(source, { entity: 'contacts', bom: true })

    const said = async (request: Request) => {
      const { body } = await request('GET', '/v1/objects/contacts?limit=200&sort=external_id')
      return body.data.map(
        ({
          id: _,
          version: _v,
          created_at: _c,
          updated_at: _u,
          created_by: _cb,
          updated_by: _ub,
          ...rest
        }: Answer['body']) => rest,
      )
    }
    const before = await said(source)
    const same = await importsOf({ request: source }).run(
      { entity: 'contacts', mode: 'upsert', by: 'external_id' },
      file,
    )
    assert.deepEqual(same.progress, {
      rows: 150,
      created: 0,
      updated: 0,
      skipped: 150,
      failed: 0,
      line: same.progress.line,
    })

    const target = await client()
    for (const { body } of [
      { body: { name: 'score', type: 'number' } },
      { body: { name: 'paid', type: 'boolean' } },
      { body: { name: 'likes', type: 'multi_select', options: ['tea', 'coffee; black', 'a, b'] } },
    ])
      await target('POST', '/v1/custom-fields/contacts', { body })
    const done = await importsOf({ request: target }).run({ entity: 'contacts' }, file)
    assert.deepEqual([done.progress.created, done.progress.failed], [150, 0])
    assert.deepEqual(await said(target), before)
  })

  it('have an empty cell for a field that a record does not have, whatever its name', async () => {
    const request = await client()
    await request('POST', '/v1/objects/contacts', {
      body: { first_name: 'A', custom_fields: { constructor: 'Bob' } },
    })
    await request('POST', '/v1/objects/contacts', { body: { first_name: 'B' } })
    const query = { sort: 'first_name', order: 'asc' }
    const { file } = await exported(request, { entity: 'contacts', query, fields: ['custom_fields'] })
    const [, ...rows] = file.trim().split('\r\n')
    assert.deepEqual(
      rows.map((row) => row.split(',')[1]),
      ['Bob', ''],
    )
  })

  it('of every kind can be imported', async () => {
    const request = await client()
    const records: Record<string, object> = {
      companies: {
        name: 'Acme',
        domain: 'acme.example',
        annual_revenue: '-1250.00',
        currency: 'CHF',
        employee_count: 12,
      },
      deals: { name: 'Big', stage: 'won', amount: '1.234', expected_close_date: '2026-01-31', tags: ['a'] },
      tasks: { title: 'Call', status: 'done', due_at: '2026-01-31T09:00:00.123Z', priority: 'high' },
      notes: { body: '=1+1\n"quoted"; and, so', format: 'markdown', pinned: true },
      activities: {
        type: 'call',
        duration_seconds: 90,
        direction: 'inbound',
        occurred_at: '2026-01-31T09:00:00Z',
      },
    }
    for (const [entity, body] of Object.entries(records)) {
      const created = await request('POST', `/v1/objects/${entity}`, {
        body: { external_id: 'one', ...body },
      })
      assert.equal(created.status, 201, JSON.stringify(created.body))
      const { file } = await exported(request, { entity })
      const values = { entity, mode: 'upsert', by: 'external_id' }
      const same = await importsOf({ request }).run(values, file)
      const { created: made, updated, skipped, failed } = same.progress
      assert.deepEqual(
        { entity, made, updated, skipped, failed },
        { entity, made: 0, updated: 0, skipped: 1, failed: 0 },
        file,
      )
    }
  })

  it('find a place beside all imports and exports that another organization may have in work', async () => {
    const organization = await createOrganization(db)
    const { key } = await createKey(db, organization)
    const many: Request = (method, path, options) => api.request(method, path, { key, ...options })
    assert.equal((await many('POST', '/v1/objects/notes', { body: { body: 'A note' } })).status, 201)
    const owner = new pg.Client({ connectionString: db.url })
    await owner.connect()
    try {
      const isOf = `when (new.organization_id = '${organization}')`
      await owner.query(`
        create function held() returns trigger language plpgsql as
          $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$;
        create trigger held before insert on export_pieces for each row ${isOf} execute function held();
        create trigger held before insert on notes for each row ${isOf} execute function held();
        select pg_advisory_lock(1)`)
      const held = async () => {
        const { rows } = await owner.query(
          `select pid, virtualtransaction from pg_locks
           where locktype = 'advisory' and objid = 1 and not granted
             and database = (select oid from pg_database where datname = current_database()) order by pid`,
        )
        return rows
      }
      for (const _ of [1, 2]) {
        assert.equal((await many('POST', '/v1/exports', { body: { entity: 'notes' } })).status, 201)
        const imports = importsOf({ request: many })
        const { body } = await imports.prepare({ entity: 'notes' }, 'body\nAnother note\n')
        assert.equal((await imports.start(body.id)).status, 200)
      }
      const before = await until(async () => {
        const rows = await held()
        return rows.length === 4 && rows
      }, 'two imports and two exports')
      const { done } = await exported(await client(), { entity: 'notes' })
      assert.equal(done.status, 'completed')
      assert.deepEqual(await held(), before, 'the others are still held')
    } finally {
      await owner.end()
    }
  })

  it('fail if the database refuses them repeatedly', async () => {
    const request = await client()
    const owner = new pg.Client({ connectionString: db.url })
    await owner.connect()
    await owner.query(`
      create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'no' using errcode = '54000'; end $$;
      create trigger refuse before insert on export_pieces for each row execute function refuse()`)
    await owner.end()
    const { done, file } = await exported(request, { entity: 'contacts' })
    assert.deepEqual(
      [done.status, done.error],
      ['failed', { message: 'something went wrong on our side', hint: 'try again later' }],
    )
    assert.match(JSON.stringify(file), /the export has failed: something went wrong/)
  })
})
