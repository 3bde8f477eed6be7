import assert from 'node:assert/strict'
import type { ErrorType } from '../../../db/model/errors.ts'
import { createRecord } from '../../../db/records/create.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

describe('records', () => {
  let db: TestDatabase
  let records: TestRecords

  before(async () => {
    db = await createTestDatabase()
    records = recordsOf(db, await createOrganization(db, { settings: { currency: 'CHF' } }))
  })
  after(() => db.drop())

  it('returns a record as created', async () => {
    const created = await records.create('contacts', {
      first_name: ' Ada ',
      email: 'Ada@Example.com',
      phone: '+41 44 668 18 00',
      last_contacted_at: '2026-01-31T10:00:00+01:00',
      tags: ['vip', 'vip'],
      custom_fields: { tier: 'gold', none: null },
    })
    assert.deepEqual(
      [created.first_name, created.email, created.phone, created.last_contacted_at, created.tags],
      ['Ada', 'Ada@Example.com', '+41446681800', '2026-01-31T09:00:00.000Z', ['vip']],
    )
    assert.deepEqual(created.custom_fields, { tier: 'gold' })
    assert.equal(created.version, 1)
    assert.deepEqual(await records.get('contacts', created.id), created)
  })

  it('writes the history and the event of each change', async () => {
    const { id } = await records.create('contacts', { first_name: 'Ada' })
    await records.update('contacts', id, { first_name: 'Grace', job_title: 'Admiral' })
    await records.delete('contacts', id)
    const history = await records.historyOf(id)
    assert.deepEqual(
      history.map(({ version, action }) => [version, action]),
      [
        [1, 'created'],
        [2, 'updated'],
        [3, 'deleted'],
      ],
    )
    assert.deepEqual(history[1].changes, {
      first_name: { from: 'Ada', to: 'Grace' },
      job_title: { from: null, to: 'Admiral' },
    })
    const events = await records.eventsOf(id)
    assert.deepEqual(
      events.map(({ name }) => name),
      ['contact.created', 'contact.updated', 'contact.deleted'],
    )
    assert.deepEqual(events[1].previous, { first_name: 'Ada', job_title: null })
    assert.equal(events[1].data.first_name, 'Grace')
  })

  it('writes no record, history or event if the transaction fails', async () => {
    let id = ''
    await assert.rejects(
      records.tenant(async (tx) => {
        id = (await createRecord(tx, 'contacts', { first_name: 'Ada', do_not_contact: false })).id
        throw new Error('later')
      }),
      /later/,
    )
    await refused(records.get('contacts', id), 'not_found')
    assert.deepEqual([await records.historyOf(id), await records.eventsOf(id)], [[], []])
  })

  it('creates no version for a patch without changes', async () => {
    const { id } = await records.create('contacts', {
      first_name: 'Ada',
      tags: ['a'],
      custom_fields: { n: 1 },
    })
    const same = await records.update('contacts', id, {
      first_name: 'Ada',
      tags: ['a'],
      custom_fields: { n: 1, none: null },
    })
    assert.equal(same.version, 1)
    assert.equal((await records.eventsOf(id)).length, 1)
  })

  it('merges custom fields key by key, and clears with null', async () => {
    const { id } = await records.create('contacts', {
      first_name: 'Ada',
      tags: ['a'],
      custom_fields: { a: 1, b: 2 },
    })
    const merged = await records.update('contacts', id, { custom_fields: { b: null, c: [3] } })
    assert.deepEqual(merged.custom_fields, { a: 1, c: [3] })
    const cleared = await records.update('contacts', id, { custom_fields: null, tags: null })
    assert.deepEqual([cleared.custom_fields, cleared.tags], [{}, []])
    assert.deepEqual(await records.get('contacts', id), cleared)
  })

  it('refuses custom fields whose total size exceeds the limit, also for a small patch', async () => {
    const big = (prefix: string) =>
      Object.fromEntries([0, 1, 2, 3].map((i) => [`${prefix}${i}`, 'x'.repeat(9_000)]))
    const { id } = await records.create('contacts', { first_name: 'Ada', custom_fields: big('a') })
    await refused(records.update('contacts', id, { custom_fields: big('b') }), 'validation_error')
  })

  it('refuses a change made for an older version', async () => {
    const { id } = await records.create('contacts', { first_name: 'Ada' })
    await records.update('contacts', id, { first_name: 'Grace' }, 1)
    await refused(records.update('contacts', id, { first_name: 'Mary' }, 1), 'version_conflict')
    assert.equal((await records.get('contacts', id)).first_name, 'Grace')
  })

  it('serialises concurrent updates', async () => {
    const { id } = await records.create('contacts', { first_name: 'Ada' })
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    await Promise.all(keys.map((key) => records.update('contacts', id, { custom_fields: { [key]: key } })))
    const record = await records.get('contacts', id)
    assert.equal(record.version, 7)
    assert.deepEqual(Object.keys(record.custom_fields as object).sort(), keys)
  })

  it('requires at least one name, email or phone of a contact', async () => {
    const { id } = await records.create('contacts', { first_name: 'Ada' })
    await refused(records.update('contacts', id, { first_name: '' }), 'validation_error')
    await records.update('contacts', id, { first_name: null, email: 'ada@example.com' })
  })

  it('accepts an external_id once, and again after a delete', async () => {
    const { id } = await records.create('companies', { name: 'A', external_id: 'x-1' })
    await refused(records.create('companies', { name: 'B', external_id: 'x-1' }), 'conflict')
    await records.create('contacts', { first_name: 'A', external_id: 'x-1' })
    await records.delete('companies', id)
    await records.create('companies', { name: 'B', external_id: 'x-1' })
    await refused(records.restore('companies', id), 'conflict')
  })

  it("uses the organization's currency by default", async () => {
    const created = await records.create('companies', { name: 'A', annual_revenue: 1e3, currency: null })
    assert.deepEqual([created.annual_revenue, created.currency], ['1000.00', 'CHF'])
    const { id } = await records.create('companies', { name: 'A' })
    const updated = await records.update('companies', id, { annual_revenue: '12.5' })
    assert.deepEqual([updated.annual_revenue, updated.currency], ['12.50', 'CHF'])
  })

  it('refuses references to missing records', async () => {
    const nobody = '01900000-0000-7000-8000-000000000000'
    await refused(records.create('contacts', { first_name: 'A', company_id: nobody }), 'validation_error')
    const company = await records.create('companies', { name: 'A' })
    await records.delete('companies', company.id)
    await refused(records.create('contacts', { first_name: 'A', company_id: company.id }), 'validation_error')
  })

  it('refuses a cycle of parent companies', async () => {
    const top = await records.create('companies', { name: 'Top' })
    const middle = await records.create('companies', { name: 'Middle', parent_company_id: top.id })
    const low = await records.create('companies', { name: 'Low', parent_company_id: middle.id })
    await refused(records.update('companies', top.id, { parent_company_id: top.id }), 'validation_error')
    await refused(records.update('companies', top.id, { parent_company_id: low.id }), 'validation_error')
  })

  it('lets no two concurrent updates close a cycle', async () => {
    const [a, b] = await Promise.all(['A', 'B'].map((name) => records.create('companies', { name })))
    for (let i = 0; i < 10; i++) {
      const done = await Promise.allSettled([
        records.update('companies', a!.id, { parent_company_id: b!.id }),
        records.update('companies', b!.id, { parent_company_id: a!.id }),
      ])
      assert.deepEqual(done.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
      for (const { id } of [a!, b!]) await records.update('companies', id, { parent_company_id: null })
    }
  })

  it('never leaves a reference to a concurrently deleted company', async () => {
    for (let i = 0; i < 20; i++) {
      const company = await records.create('companies', { name: 'A' })
      const [created] = await Promise.allSettled([
        records.create('contacts', { first_name: 'A', company_id: company.id }),
        records.delete('companies', company.id),
      ])
      if (created.status === 'rejected') continue
      assert.equal((await records.get('contacts', created.value.id)).company_id, null)
    }
  })

  describe('deleted', () => {
    it('disappear everywhere, and can be restored', async () => {
      const { id } = await records.create('companies', { name: 'Gone Ltd' })
      await records.delete('companies', id)
      await refused(records.get('companies', id), 'not_found')
      await refused(records.delete('companies', id), 'not_found')
      await refused(records.update('companies', id, { name: 'B' }), 'not_found')
      assert.equal((await records.list('companies', { q: 'gone' })).total, 0)
      const restored = await records.restore('companies', id)
      assert.deepEqual([restored.name, restored.version], ['Gone Ltd', 3])
      assert.deepEqual(await records.get('companies', id), restored)
      assert.deepEqual((await records.eventsOf(id)).at(-1).name, 'company.restored')
      await refused(records.restore('companies', id), 'not_found')
    })

    it('cannot be restored after 30 days', async () => {
      const { id } = await records.create('companies', { name: 'A' })
      await records.delete('companies', id)
      await db
        .system('companies')
        .where({ id })
        .update({ deleted_at: db.system.raw("now() - interval '31 days'") })
      await refused(records.restore('companies', id), 'not_found')
    })

    it('clear the references to them, and restore those that nobody replaced', async () => {
      const [old, other] = [
        await records.create('companies', { name: 'Old' }),
        await records.create('companies', { name: 'Other' }),
      ]
      const employee = (company: string) =>
        records.create('contacts', { first_name: 'A', company_id: company })
      const [stays, moves] = [await employee(old.id), await employee(old.id)]
      const visits = await employee(other.id)
      await records.link('contacts', visits.id, 'companies', old.id)
      await records.update('contacts', visits.id, { company_id: null })
      const returned = await employee(old.id)
      await records.update('contacts', returned.id, { company_id: other.id })
      await records.link('contacts', returned.id, 'companies', old.id)
      await records.delete('companies', old.id)
      assert.equal((await records.get('contacts', stays.id)).company_id, null)
      await records.update('contacts', moves.id, { company_id: other.id })
      await records.restore('companies', old.id)
      const companyOf = async (id: string) => (await records.get('contacts', id)).company_id
      assert.equal(await companyOf(stays.id), old.id)
      assert.equal(await companyOf(moves.id), other.id)
      assert.equal(await companyOf(visits.id), null)
      assert.equal(await companyOf(returned.id), other.id)
    })

    it('are restored without references to records deleted since', async () => {
      const company = await records.create('companies', { name: 'A' })
      const contact = await records.create('contacts', { first_name: 'A', company_id: company.id })
      await records.delete('contacts', contact.id)
      await records.delete('companies', company.id)
      assert.equal((await records.restore('contacts', contact.id)).company_id, null)
      await records.restore('companies', company.id)
      assert.equal((await records.get('contacts', contact.id)).company_id, company.id)
    })
  })
})

const refused = (work: Promise<unknown>, type: ErrorType) =>
  assert.rejects(work, (error: { type?: string }) => {
    assert.equal(error.type, type)
    return true
  })
