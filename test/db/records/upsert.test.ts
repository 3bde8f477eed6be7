import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AppError } from '../../../db/model/errors.ts'
import type { KindName } from '../../../db/model/records/kind.ts'
import { createSchema, type RecordInput, upsertSchema } from '../../../db/model/records/schemas.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { listRelated } from '../../../db/records/associations.ts'
import { createDefinition } from '../../../db/records/custom-fields/definitions.ts'
import { deleteRecord } from '../../../db/records/delete.ts'
import { upsertMany, upsertRecord } from '../../../db/records/upsert.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { everything, recordsOf, type TestRecords } from '../../support/records.ts'

describe('an upsert', () => {
  let db: TestDatabase
  let records: TestRecords
  const upsert = (kind: KindName, by: string, fields: RecordInput) =>
    records.tenant((tx) =>
      upsertRecord(tx, kind, by, createSchema(kind).parse(fields), upsertSchema(kind).parse(fields)),
    )

  const BY = ['email', 'external_id', 'custom_fields.badge']
  const defineBadge = () =>
    records.tenant((tx) => createDefinition(tx, 'contacts', 'badge', { type: 'text', unique: true }))
  /** An upsert of a contact, alone and in a set. */
  const ways = {
    one: (tx: Tenant, by: string, fields: RecordInput) =>
      upsertRecord(
        tx,
        'contacts',
        by,
        createSchema('contacts').parse(fields),
        upsertSchema('contacts').parse(fields),
      ),
    many: async (tx: Tenant, by: string, fields: RecordInput) => {
      const of = {
        input: createSchema('contacts').parse(fields),
        patch: upsertSchema('contacts').parse(fields),
      }
      const [outcome] = await upsertMany(tx, 'contacts', by, [of])
      if ('error' in outcome!) throw outcome.error
      return outcome!
    },
  }

  before(async () => {
    db = await createTestDatabase()
  })
  beforeEach(async () => {
    records = recordsOf(db, await createOrganization(db))
  })
  after(() => db.drop())

  it('creates, then updates, case-insensitively', async () => {
    const first = await upsert('contacts', 'email', { email: 'Ada@Example.com', tags: ['vip'] })
    const second = await upsert('contacts', 'email', { email: 'ada@example.COM', first_name: 'Ada' })
    assert.deepEqual([first.created, second.created], [true, false])
    assert.equal(second.record.id, first.record.id)
    assert.deepEqual([second.record.first_name, second.record.tags], ['Ada', ['vip']])
  })

  it('finds a company by any form of its domain', async () => {
    const { record } = await upsert('companies', 'domain', { name: 'Acme', domain: 'acme.example' })
    const again = await upsert('companies', 'domain', {
      name: 'Acme Inc',
      domain: 'https://www.ACME.example/x',
    })
    assert.deepEqual([again.created, again.record.id, again.record.name], [false, record.id, 'Acme Inc'])
  })

  it('creates one record for concurrent requests', async () => {
    for (const round of [1, 2, 3, 4]) {
      const asked = [1, 2, 3, 4, 5, 6, 7, 8].map((n) =>
        upsert('contacts', 'email', {
          email: `${n % 2 ? 'a' : 'A'}@b${round}.example`,
          custom_fields: { [`n${n}`]: n },
        }),
      )
      const done = await Promise.all(asked)
      assert.equal(done.filter(({ created }) => created).length, 1)
      const { data, total } = await records.list('contacts')
      assert.equal(total, round)
      assert.equal(Object.keys(data[0]!.custom_fields as object).length, 8)
    }
  })

  for (const first of BY)
    for (const second of BY)
      for (const how of ['one', 'many'] as const)
        it(`creates one record for two concurrent requests, by ${first} and by ${second} (${how})`, async () => {
          await defineBadge()
          const fields = { email: 'm@x.example', external_id: 'm', custom_fields: { badge: 'b7' } }
          let made = () => {}
          const making = new Promise<void>((resolve) => {
            made = resolve
          })
          const [, outcome] = await Promise.all([
            records.tenant(async (tx) => {
              await ways[how](tx, first, { ...fields, first_name: 'Ada' })
              made()
              await sleep(100)
            }),
            making.then(() =>
              records.tenant((tx) => ways[how](tx, second, { ...fields, last_name: 'Lovelace' })),
            ),
          ])
          assert.equal(outcome.created, false)
          const { first_name, last_name } = outcome.record
          assert.deepEqual([first_name, last_name], ['Ada', 'Lovelace'])
          assert.equal((await records.list('contacts')).total, 1)
        })

  for (const how of ['one', 'many'] as const)
    it(`is refused if another record has a unique value (${how})`, async () => {
      await defineBadge()
      await records.create('contacts', { external_id: 'm', email: 'other@x.example' })
      await records.create('contacts', { first_name: 'B', custom_fields: { badge: 'b7' } })
      for (const [taken, param] of [
        [{ external_id: 'm' }, 'external_id'],
        [{ custom_fields: { badge: 'B7' } }, 'custom_fields.badge'],
      ] as const)
        await assert.rejects(
          records.tenant((tx) => ways[how](tx, 'email', { email: 'm@x.example', ...taken })),
          { type: 'conflict', details: { param } },
        )
      assert.equal((await records.list('contacts')).total, 2)
    })

  it('creates links for created and updated records', async () => {
    const acme = await records.create('companies', { name: 'Acme' })
    const other = await records.create('companies', { name: 'Other' })
    const deal = await records.create('deals', { name: 'Engine' })
    const upsert = (associations: object[]) =>
      records.tenant((tx) =>
        ways.many(tx, 'external_id', { first_name: 'Ada', external_id: 'a', associations }),
      )
    const made = await upsert([])
    const found = await upsert([
      { object: 'company', id: acme.id, label: 'employer' },
      { object: 'companies', id: other.id },
      { object: 'deal', id: deal.id },
    ])
    assert.deepEqual(
      [found.created, found.record.id, found.record.version, found.record.company_id],
      [false, made.record.id, 2, acme.id],
    )
    assert.equal((await records.get('deals', deal.id)).contact_id, made.record.id)
    await records.link('contacts', made.record.id, 'companies', acme.id, { label: 'board', since: 2020 })
    const again = await upsert([
      { object: 'company', id: other.id },
      { object: 'company', id: acme.id, label: 'employer' },
    ])
    assert.deepEqual([again.record.version, again.record.company_id], [2, acme.id])
    const { data } = await records.tenant((tx) =>
      listRelated(tx, 'contacts', made.record.id, 'companies', everything),
    )
    assert.deepEqual(
      new Map(data.map(({ id, association: { label, properties } }) => [id, [label, properties]])),
      new Map([
        [acme.id, ['employer', { since: 2020 }]],
        [other.id, [null, {}]],
      ]),
    )
  })

  it('names the invalid link, and changes nothing', async () => {
    const { id } = await records.create('contacts', { first_name: 'Ada', external_id: 'a' })
    const deal = await records.create('deals', { name: 'Engine' })
    await records.delete('deals', deal.id)
    for (const [wrong, type] of [
      [{ object: 'deal', id: deal.id }, 'not_found'],
      [{ object: 'contact', id }, 'self_reference'],
    ] as const)
      await assert.rejects(
        records.tenant((tx) =>
          ways.many(tx, 'external_id', { external_id: 'a', first_name: 'Bob', associations: [wrong] }),
        ),
        (error: AppError) => {
          const [issue] = error.details.issues ?? []
          assert.deepEqual([issue?.loc, issue?.type], [['body', 'associations', 0, 'id'], type])
          return true
        },
      )
    assert.equal((await records.get('contacts', id)).version, 1)
  })

  it('makes no company its own grandparent', async () => {
    const top = await records.create('companies', { name: 'Top', external_id: 'top' })
    const sub = await records.create('companies', { name: 'Sub', parent_company_id: top.id })
    const { record } = await upsert('companies', 'external_id', {
      name: 'Top',
      external_id: 'top',
      associations: [{ object: 'company', id: sub.id }],
    })
    assert.deepEqual([record.id, record.parent_company_id], [top.id, null])
  })

  it('creates a new record if the found one is deleted during the lookup', async () => {
    for (const how of ['one', 'many'] as const) {
      const one = (fields: RecordInput) => records.tenant((tx) => ways[how](tx, 'email', fields))
      for (let round = 0; round < 10; round++) {
        const email = `gone${round}@b.example`
        const { record } = await one({ email })
        const [upserted] = await Promise.all([
          one({ email }),
          records.tenant((tx) => deleteRecord(tx, 'contacts', record.id)),
        ])
        assert.equal(upserted.record.email, email)
        await records.tenant((tx) => deleteRecord(tx, 'contacts', upserted.record.id)).catch(() => {})
      }
    }
  })

  it('lists the candidates of an ambiguous key', async () => {
    const [one, two] = [
      await records.create('contacts', { email: 'a@b.example' }),
      await records.create('contacts', { email: 'A@b.example' }),
    ]
    await assert.rejects(upsert('contacts', 'email', { email: 'a@B.example' }), (error: unknown) => {
      const { type, details } = error as { type: string; details: { candidates: { id: string }[] } }
      assert.equal(type, 'conflict')
      assert.deepEqual(
        details.candidates.map(({ id }) => id),
        [one.id, two.id],
      )
      return true
    })
  })

  it('does not find deleted records', async () => {
    const { record } = await upsert('contacts', 'external_id', { first_name: 'Ada', external_id: 'x' })
    await records.delete('contacts', record.id)
    assert.equal(
      (await upsert('contacts', 'external_id', { first_name: 'Ada', external_id: 'x' })).created,
      true,
    )
  })

  it('creates a record without a key', async () => {
    for (const _ of [1, 2])
      assert.ok((await upsert('contacts', 'email', { first_name: 'Ada', email: null })).created)
  })
})
