import assert from 'node:assert/strict'
import type { ErrorType } from '../../../db/model/errors.ts'
import { type KindName, referencesOf } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { link, listRelated, unlink } from '../../../db/records/associations.ts'
import { deleteRecord } from '../../../db/records/delete.ts'
import { lockRecord, lockRecords } from '../../../db/records/lock.ts'
import { mergeRecords } from '../../../db/records/merge.ts'
import { updateMany, updateRecord } from '../../../db/records/update.ts'
import { mergeableKinds } from '../../../workflows/shared/record-kinds.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { createExample, exampleOf } from '../../support/example-of.ts'
import { everything, recordsOf, type TestRecords } from '../../support/records.ts'

describe('associations', () => {
  let db: TestDatabase
  let records: TestRecords
  let contact: string
  let company: string
  before(async () => {
    db = await createTestDatabase()
    records = recordsOf(db, await createOrganization(db))
  })
  beforeEach(async () => {
    contact = (await records.create('contacts', { first_name: 'Ada' })).id
    company = (await records.create('companies', { name: 'Acme' })).id
  })
  after(() => db.drop())

  const related = async (kind: KindName, id: string, target: KindName) =>
    (await records.tenant((tx) => listRelated(tx, kind, id, target, everything))).data.map((one) => one.id)
  const remove = (kind: KindName, id: string, target: KindName, targetId: string) =>
    records.tenant((tx) => unlink(tx, kind, id, target, targetId))
  const companyOf = async (id: string) => (await records.get('contacts', id)).company_id
  const parentOf = async (id: string) => (await records.get('companies', id)).parent_company_id

  it('are visible from both ends, whichever end created them', async () => {
    await records.link('companies', company, 'contacts', contact)
    assert.deepEqual(await related('companies', company, 'contacts'), [contact])
    assert.deepEqual(await related('contacts', contact, 'companies'), [company])
  })

  it('show label and properties at both ends, one for each record of a page', async () => {
    const other = (await records.create('companies', { name: 'Other' })).id
    const made = await records.link('contacts', contact, 'companies', company, { label: 'boss', since: 2020 })
    await records.link('companies', other, 'contacts', contact)
    const seen = async (kind: KindName, id: string, target: KindName) =>
      (await records.tenant((tx) => listRelated(tx, kind, id, target, everything))).data.map(
        ({ id, association }) => [id, association],
      )
    const { label, properties, created_at } = made
    assert.deepEqual(await seen('companies', company, 'contacts'), [
      [contact, { label, properties, created_at }],
    ])
    const companies = new Map((await seen('contacts', contact, 'companies')) as [string, typeof made][])
    assert.deepEqual(companies.get(company), { label: 'boss', properties: { since: 2020 }, created_at })
    assert.deepEqual([companies.get(other)?.label, companies.get(other)?.properties], [null, {}])
  })

  it('exist once for a pair, also with upper-case ids', async () => {
    await records.link('contacts', contact, 'companies', company, { label: 'boss', since: 2020 })
    const kept = await records.link('companies', company.toUpperCase(), 'contacts', contact.toUpperCase())
    assert.deepEqual([kept.label, kept.properties], ['boss', { since: 2020 }])
    assert.deepEqual(kept.from, { object: 'company', id: company })
    const replaced = await records.link('contacts', contact, 'companies', company, { since: 2021 })
    assert.deepEqual([replaced.label, replaced.properties], [null, { since: 2021 }])
    assert.equal(replaced.created_at, kept.created_at)
    assert.deepEqual(await related('contacts', contact, 'companies'), [company])
  })

  it('fill the reference only if it is null', async () => {
    await records.link('companies', company, 'contacts', contact)
    assert.equal(await companyOf(contact), company)
    const other = (await records.create('companies', { name: 'Other' })).id
    await records.link('contacts', contact, 'companies', other)
    assert.equal(await companyOf(contact), company)
    assert.deepEqual((await related('contacts', contact, 'companies')).sort(), [company, other].sort())
    assert.equal((await records.eventsOf(contact)).at(-1).data.company_id, company)
  })

  it('follow the reference field', async () => {
    const other = (await records.create('companies', { name: 'Other' })).id
    await records.update('contacts', contact, { company_id: company })
    assert.deepEqual(await related('companies', company, 'contacts'), [contact])
    await records.update('contacts', contact, { company_id: other })
    assert.deepEqual(await related('contacts', contact, 'companies'), [other])
    await records.update('contacts', contact, { company_id: null })
    assert.deepEqual(await related('contacts', contact, 'companies'), [])
  })

  for (const [how, change] of [
    ['an update', (id: string, company_id: string | null) => records.update('contacts', id, { company_id })],
    [
      'many updates',
      (id: string, company_id: string | null) =>
        records.tenant(async (tx) => {
          const others = [await records.create('contacts', { first_name: 'Bob' }), { id }]
          return updateMany(
            tx,
            'contacts',
            others.map((one) => ({ id: one.id, patch: { company_id } })),
          )
        }),
    ],
  ] as const)
    it(`with a label stay when ${how} names another record, and are removed when it names none`, async () => {
      const board = (await records.create('companies', { name: 'Board' })).id
      const bare = (await records.create('companies', { name: 'Bare' })).id
      await records.link('contacts', contact, 'companies', company, { label: 'Employer' })
      await records.link('contacts', contact, 'companies', board, { since: 2020 })
      await change(contact, board)
      assert.deepEqual((await related('contacts', contact, 'companies')).sort(), [company, board].sort())
      await change(contact, bare)
      assert.equal((await related('contacts', contact, 'companies')).length, 3)
      await change(contact, company)
      assert.deepEqual((await related('contacts', contact, 'companies')).sort(), [company, board].sort())
      const employer = await records.link('contacts', contact, 'companies', company)
      assert.equal(employer.label, 'Employer')
      await change(contact, null)
      assert.deepEqual(await related('contacts', contact, 'companies'), [board])
    })

  it('clear the reference when removed from either end', async () => {
    await records.link('contacts', contact, 'companies', company)
    await remove('companies', company, 'contacts', contact)
    assert.equal(await companyOf(contact), null)
    await refused(remove('contacts', contact, 'companies', company), 'not_found')
  })

  it('between two companies only make the second the parent of the first', async () => {
    const holding = (await records.create('companies', { name: 'Holding' })).id
    await records.link('companies', company, 'companies', holding)
    assert.deepEqual([await parentOf(company), await parentOf(holding)], [holding, null])
    await records.link('companies', holding, 'companies', company)
    assert.deepEqual([await parentOf(company), await parentOf(holding)], [holding, null])
    assert.deepEqual(await related('companies', holding, 'companies'), [company])
    await remove('companies', holding, 'companies', company)
    assert.deepEqual([await parentOf(company), await parentOf(holding)], [null, null])
  })

  it('keep an existing parent of a company, and do not make the other a parent', async () => {
    const holding = (await records.create('companies', { name: 'Holding' })).id
    const owned = await records.create('companies', { name: 'Owned', parent_company_id: holding })
    await records.link('companies', owned.id, 'companies', company)
    assert.deepEqual([await parentOf(owned.id), await parentOf(company)], [holding, null])
  })

  it('are created with a record', async () => {
    const made = await records.create('contacts', {
      first_name: 'Grace',
      associations: [{ object: 'company', id: company.toUpperCase(), label: 'works for' }],
    })
    assert.deepEqual([made.company_id, made.version], [company, 1])
    assert.deepEqual(await records.get('contacts', made.id), made)
    assert.deepEqual(await related('companies', company, 'contacts'), [made.id])
    const [created, ...others] = await records.eventsOf(made.id)
    assert.deepEqual([created.name, created.data, others], ['contact.created', made, []])
    const [first, ...rest] = await records.historyOf(made.id)
    assert.deepEqual([first.changes.company_id, rest], [{ from: null, to: company }, []])
    assert.equal((await records.link('contacts', made.id, 'companies', company)).label, 'works for')
    const { total } = await records.list('contacts')
    await refused(
      records.create('contacts', { first_name: 'B', associations: [{ object: 'company', id: contact }] }),
      'validation_error',
    )
    assert.equal((await records.list('contacts')).total, total)
  })

  it('created with a record fill the references of both ends, the first of each kind', async () => {
    const other = await records.create('companies', {
      name: 'Other',
      associations: [{ object: 'contact', id: contact }],
    })
    assert.equal(await companyOf(contact), other.id)
    const deal = await records.create('deals', {
      name: 'Engine',
      associations: [
        { object: 'companies', id: company },
        { object: 'companies', id: other.id },
        { object: 'contacts', id: contact },
      ],
    })
    assert.deepEqual([deal.company_id, deal.contact_id, deal.version], [company, contact, 1])
    assert.deepEqual((await related('deals', deal.id, 'companies')).sort(), [company, other.id].sort())
  })

  it('created with a record report missing records', async () => {
    const associations = [
      { object: 'contact', id: contact },
      { object: 'contact', id: company },
      { object: 'deal', id: contact },
    ]
    await assert.rejects(
      records.create('notes', { body: 'Hello', associations }),
      (error: { details?: { issues?: { loc: unknown[] }[] } }) => {
        assert.deepEqual(
          error.details?.issues?.map(({ loc }) => loc),
          [1, 2].map((i) => ['body', 'associations', i, 'id']),
        )
        return true
      },
    )
  })

  for (const kind of kindNames)
    for (const target of kindNames)
      it(`join ${kind} and ${target}, with a label and properties`, async () => {
        const { id: one, ...before } = await records.create(kind, await exampleOf(kind, records.create))
        const two = (await createExample(target, records.create)).id
        // A required reference has a record already.
        const filled = referencesOf(kinds[kind], target).filter(([name]) => before[name] === null)
        const [own, other] = [await related(kind, one, target), await related(target, two, kind)]
        const made = await records.link(kind, one, target, two, { label: 'first', since: 2020 })
        assert.deepEqual([made.label, made.properties], ['first', { since: 2020 }])
        assert.deepEqual((await related(kind, one, target)).sort(), [...own, two].sort())
        assert.deepEqual((await related(target, two, kind)).sort(), [...other, one].sort())
        for (const [name] of filled) assert.equal((await records.get(kind, one))[name], two)
        await remove(target, two, kind, one)
        assert.deepEqual(await related(kind, one, target), own)
        for (const [name] of filled) assert.equal((await records.get(kind, one))[name], null)
      })

  for (const kind of kindNames)
    for (const [name, { to, required }] of referencesOf(kinds[kind]))
      it(`follow ${name} of ${kind}, also when its record is deleted and restored`, async () => {
        const other = (await createExample(to, records.create)).id
        const { id } = await records.create(kind, { ...kinds[kind].example, [name]: other })
        assert.deepEqual(await related(to, other, kind), [id])
        await records.delete(to, other)
        const cleared = await records.get(kind, id)
        assert.deepEqual([cleared[name], cleared.version], [null, 2])
        await records.restore(to, other)
        assert.equal((await records.get(kind, id))[name], other)
        assert.deepEqual(await related(kind, id, to), [other])
        if (required) return
        await records.update(kind, id, { [name]: null })
        assert.deepEqual(await related(kind, id, to), [])
      })

  for (const kind of kindNames)
    for (const [name, { to }] of referencesOf(kinds[kind]))
      it(`restore ${name} of ${kind}, in any order of deletes and restores of both ends`, async () => {
        for (const deleted of ['holder', 'other'] as const)
          for (const restored of ['holder', 'other'] as const) {
            const other = (await createExample(to, records.create)).id
            const { id } = await records.create(kind, { ...kinds[kind].example, [name]: other })
            const ends = { holder: [kind, id], other: [to, other] } as const
            const second = { holder: 'other', other: 'holder' } as const
            await records.delete(...ends[deleted])
            await records.delete(...ends[second[deleted]])
            await records.restore(...ends[restored])
            await records.restore(...ends[second[restored]])
            const order = `deleted first: ${deleted}, restored first: ${restored}`
            assert.equal((await records.get(kind, id))[name], other, order)
            assert.deepEqual(await related(kind, id, to), [other], order)
          }
      })

  it('that were removed before both ends were deleted restore no reference', async () => {
    await records.update('contacts', contact, { company_id: company })
    await remove('contacts', contact, 'companies', company)
    await records.delete('companies', company)
    await records.delete('contacts', contact)
    await records.restore('companies', company)
    assert.equal((await records.restore('contacts', contact)).company_id, null)
  })

  it('point a restored record to the winner of a merge meanwhile', async () => {
    const winner = (await records.create('companies', { name: 'Acme Ltd' })).id
    await records.update('contacts', contact, { company_id: company })
    await records.delete('companies', company)
    await records.delete('contacts', contact)
    await records.restore('companies', company)
    await records.tenant((tx) => mergeRecords(tx, 'companies', winner, company))
    assert.equal((await records.restore('contacts', contact)).company_id, winner)
    assert.deepEqual(await related('contacts', contact, 'companies'), [winner])
  })

  it('need two existing records', async () => {
    await refused(records.link('companies', company, 'companies', company.toUpperCase()), 'validation_error')
    await refused(records.link('contacts', contact, 'companies', contact), 'not_found')
    await refused(related('companies', contact, 'contacts'), 'not_found')
    await records.delete('companies', company)
    await refused(records.link('contacts', contact, 'companies', company), 'not_found')
  })

  it('wait for an update of either record, and never block it', async () => {
    for (const [change, changed] of [
      [link, company],
      [unlink, null],
    ] as const) {
      let transactions = 0
      let held = () => {}
      const holding = new Promise<void>((resolve) => {
        held = resolve
      })
      const update = records.tenant(async (tx) => {
        transactions++
        await lockRecord(tx, 'contacts', contact)
        held()
        await new Promise((resolve) => setTimeout(resolve, 100))
        await updateRecord(tx, 'contacts', contact, { company_id: changed })
      })
      await holding
      const other = records.tenant(async (tx) => {
        transactions++
        return change(tx, 'companies', company, 'contacts', contact)
      })
      await Promise.allSettled([update, other])
      assert.equal(await companyOf(contact), changed)
      assert.equal(transactions, 2, 'no transaction was retried after a deadlock')
    }
  })

  /** Runs two transactions, the second while the first holds its locks. @returns the number of starts. */
  const meeting = async (lock: Work, then: Work, meanwhile: Work) => {
    let transactions = 0
    let held = () => {}
    const holding = new Promise<void>((resolve) => {
      held = resolve
    })
    const first = records.tenant(async (tx) => {
      transactions++
      await lock(tx)
      held()
      await new Promise((resolve) => setTimeout(resolve, 100))
      await then(tx)
    })
    await holding
    const second = records.tenant(async (tx) => {
      transactions++
      await meanwhile(tx)
    })
    await Promise.all([first, second])
    return transactions
  }

  for (const kind of kindNames)
    for (const [name, { to }] of referencesOf(kinds[kind]))
      for (const way of ['deleted', 'merged'] as const)
        it(`by ${name} of ${kind} never deadlock with a record that is ${way} meanwhile`, async () => {
          const other = (await createExample(to, records.create)).id
          const winner = (await createExample(to, records.create)).id
          const one = await records.create(kind, { ...kinds[kind].example, [name]: other })
          // Not the same record where the reference is a part of its key.
          const [, apart] = kinds[kind].identity ?? []
          const example = await exampleOf(kind, records.create)
          const two = await records.create(kind, { ...example, ...(apart && { [apart]: 'two' }) })
          const transactions = await meeting(
            (tx) => lockRecords(tx, kind, [one.id, two.id]),
            (tx) => updateRecord(tx, kind, two.id, { [name]: other }),
            (tx) =>
              way === 'deleted'
                ? deleteRecord(tx, to, other)
                : mergeRecords(tx, mergeable(to), winner, other),
          )
          const now = way === 'deleted' ? null : winner
          for (const { id } of [one, two]) assert.equal((await records.get(kind, id))[name], now)
          assert.equal(transactions, 2, 'no transaction was retried after a deadlock')
        })

  it('between two companies never cause a deadlock of an update of both and a delete', async () => {
    const owned = await records.create('companies', { name: 'Owned', parent_company_id: company })
    const transactions = await meeting(
      (tx) => lockRecord(tx, 'companies', company),
      (tx) => updateRecord(tx, 'companies', owned.id, { name: 'Still owned' }),
      (tx) => deleteRecord(tx, 'companies', company),
    )
    assert.equal(await parentOf(owned.id), null)
    assert.equal(transactions, 2, 'no transaction was retried after a deadlock')
  })

  it('never cause a deadlock of the deletes of two records that a third refers to', async () => {
    await records.update('contacts', contact, { company_id: company })
    const fields = { name: 'Engine', company_id: company, contact_id: contact }
    const deal = await records.create('deals', fields)
    const transactions = await meeting(
      (tx) => lockRecord(tx, 'deals', deal.id),
      (tx) => deleteRecord(tx, 'contacts', contact),
      (tx) => deleteRecord(tx, 'companies', company),
    )
    const { company_id, contact_id } = await records.get('deals', deal.id)
    assert.deepEqual([company_id, contact_id], [null, null])
    assert.equal(transactions, 2, 'no transaction was retried after a deadlock')
  })

  it('are not created with a record that is being deleted', async () => {
    let deleted = () => {}
    const begun = new Promise<void>((resolve) => {
      deleted = resolve
    })
    const deletion = records.tenant(async (tx) => {
      await deleteRecord(tx, 'companies', company)
      deleted()
      await new Promise((resolve) => setTimeout(resolve, 100))
    })
    await begun
    await refused(records.link('contacts', contact, 'companies', company), 'not_found')
    await deletion
    await records.restore('companies', company)
    assert.deepEqual(await related('contacts', contact, 'companies'), [])
  })

  it('are not visible while one end is deleted', async () => {
    await records.link('contacts', contact, 'companies', company, { label: 'boss' })
    await records.delete('companies', company)
    assert.deepEqual(await related('contacts', contact, 'companies'), [])
    await records.restore('companies', company)
    assert.deepEqual(await related('contacts', contact, 'companies'), [company])
    assert.equal((await records.link('contacts', contact, 'companies', company)).label, 'boss')
  })
})

type Work = (tx: Tenant) => Promise<unknown>

const mergeable = (kind: KindName) => mergeableKinds.find((one) => one === kind)!

const refused = (work: Promise<unknown>, type: ErrorType) =>
  assert.rejects(work, (error: { type?: string }) => {
    assert.equal(error.type, type)
    return true
  })
