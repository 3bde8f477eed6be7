import assert from 'node:assert/strict'
import type { AppError } from '../../../db/model/errors.ts'
import type { KindName } from '../../../db/model/records/kind.ts'
import type { AgxRecord } from '../../../db/model/records/schemas.ts'
import { createDefinition } from '../../../db/records/custom-fields/definitions.ts'
import { listHistory } from '../../../db/records/history.ts'
import { mergeRecords } from '../../../db/records/merge.ts'
import { updateSet } from '../../../db/records/update.ts'
import type { MergeableKind } from '../../../workflows/shared/record-kinds.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

describe('merging two records', () => {
  let db: TestDatabase
  let organizationId: string
  let records: TestRecords

  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())
  beforeEach(async () => {
    organizationId = await createOrganization(db)
    records = recordsOf(db, organizationId)
  })

  const merge = (kind: MergeableKind, winner: string, loser: string, version?: number) =>
    records.tenant((tx) =>
      mergeRecords(tx, kind, winner, loser, { ifVersion: version === undefined ? undefined : [version] }),
    )
  const history = async (kind: KindName, id: string) =>
    (await records.tenant((tx) => listHistory(tx, kind, id, { limit: 200, offset: 0, order: 'asc' }))).data
  const related = async (id: string) =>
    (await db.system('associations').where({ organization_id: organizationId }))
      .filter(({ a_id, b_id }) => a_id === id || b_id === id)
      .map(({ a_id, b_id }) => (a_id === id ? b_id : a_id))
      .sort()

  it('fills empty fields, combines tags and custom fields, and keeps existing values', async () => {
    const company = await records.create('companies', { name: 'Engines' })
    const winner = await records.create('contacts', {
      first_name: 'Ada',
      email: 'ada@example.com',
      tags: ['vip', 'old'],
      custom_fields: { tier: 'gold' },
    })
    const loser = await records.create('contacts', {
      first_name: 'Augusta',
      last_name: 'King',
      phone: '+41446681800',
      external_id: 'crm-7',
      company_id: company.id,
      address: { city: 'London' },
      tags: ['old', 'new'],
      custom_fields: { tier: 'silver', score: 5 },
    })
    const merged = await merge('contacts', winner.id, loser.id)
    assert.deepEqual(await records.get('contacts', winner.id), merged)
    const { version, first_name, last_name, email, phone, external_id, company_id, tags, custom_fields } =
      merged
    assert.deepEqual(
      { version, first_name, last_name, email, phone, external_id, company_id, tags, custom_fields },
      {
        version: 2,
        first_name: 'Ada',
        last_name: 'King',
        email: 'ada@example.com',
        phone: '+41446681800',
        external_id: 'crm-7',
        company_id: company.id,
        tags: ['vip', 'old', 'new'],
        custom_fields: { tier: 'gold', score: 5 },
      },
    )
    assert.deepEqual(merged.address, { city: 'London' })
    assert.deepEqual(await related(company.id), [winner.id])
  })

  it('keeps an opt-out of either record', async () => {
    for (const optedOut of ['winner', 'loser']) {
      const winner = await records.create('contacts', {
        first_name: 'W',
        do_not_contact: optedOut === 'winner',
      })
      const loser = await records.create('contacts', {
        first_name: 'L',
        do_not_contact: optedOut === 'loser',
      })
      const merged = await merge('contacts', winner.id, loser.id)
      assert.equal(merged.do_not_contact, true, optedOut)
      assert.deepEqual(await records.get('contacts', winner.id), merged)
    }
  })

  it('moves unique values to the winner', async () => {
    await records.tenant((tx) => createDefinition(tx, 'contacts', 'badge', { type: 'text', unique: true }))
    const winner = await records.create('contacts', { first_name: 'W' })
    const loser = await records.create('contacts', { last_name: 'L', custom_fields: { badge: 'b7' } })
    await merge('contacts', winner.id, loser.id)
    const again = records.create('contacts', { first_name: 'X', custom_fields: { badge: 'B7' } })
    await assert.rejects(again, { details: { param: 'custom_fields.badge' } })
    await records.update('contacts', winner.id, { custom_fields: { badge: null } })
    await records.create('contacts', { first_name: 'X', custom_fields: { badge: 'B7' } })
  })

  it('moves an amount with its currency', async () => {
    const winner = await records.create('deals', { name: 'A', currency: 'USD' })
    const loser = await records.create('deals', { name: 'B', amount: '5', currency: 'EUR' })
    const { amount, currency } = await merge('deals', winner.id, loser.id)
    assert.deepEqual([amount, currency], ['5.00', 'EUR'])
  })

  it('moves links and references, and combines duplicate links', async () => {
    const winner = await records.create('contacts', { first_name: 'W' })
    const loser = await records.create('contacts', { first_name: 'L' })
    const deal = await records.create('deals', { name: 'D', contact_id: loser.id })
    const both = await records.create('companies', { name: 'Both' })
    const one = await records.create('companies', { name: 'One' })
    await records.link('contacts', loser.id, 'companies', one.id, { label: 'employer', since: 1842 })
    await records.link('contacts', loser.id, 'companies', both.id, { label: 'client', a: 1, b: 1 })
    await records.link('companies', both.id, 'contacts', winner.id, { b: 2 })
    await records.link('contacts', winner.id, 'contacts', loser.id)
    await merge('contacts', winner.id, loser.id)

    assert.equal((await records.get('deals', deal.id)).contact_id, winner.id)
    assert.deepEqual(await related(winner.id), [deal.id, both.id, one.id].sort())
    assert.deepEqual(await related(loser.id), [])
    const rows = await db.system('associations').where({ organization_id: organizationId })
    const about = (id: string) => rows.find(({ a_id, b_id }) => a_id === id || b_id === id)
    assert.deepEqual([about(one.id).label, about(one.id).properties], ['employer', { since: 1842 }])
    assert.deepEqual([about(both.id).label, about(both.id).properties], ['client', { a: 1, b: 2 }])
    assert.equal((await records.eventsOf(deal.id)).at(-1).previous.contact_id, loser.id)
  })

  it('never creates a cycle of parent companies', async () => {
    const loser = await records.create('companies', { name: 'L' })
    const middle = await records.create('companies', { name: 'M', parent_company_id: loser.id })
    const winner = await records.create('companies', { name: 'W', parent_company_id: middle.id })
    const child = await records.create('companies', { name: 'C', parent_company_id: loser.id })
    await merge('companies', winner.id, loser.id)
    const parentOf = async (id: string) => (await records.get('companies', id)).parent_company_id
    assert.equal(await parentOf(winner.id), middle.id)
    assert.equal(await parentOf(middle.id), null)
    assert.equal(await parentOf(child.id), winner.id)

    const upper = await records.create('companies', { name: 'U' })
    const parent = await records.create('companies', { name: 'P', parent_company_id: upper.id })
    const kid = await records.create('companies', { name: 'K', parent_company_id: parent.id })
    await merge('companies', kid.id, parent.id)
    assert.equal(await parentOf(kid.id), upper.id)
    await merge('companies', upper.id, kid.id)
    assert.equal(await parentOf(upper.id), null)

    const below = await records.create('companies', { name: 'B', parent_company_id: upper.id })
    const lowest = await records.create('companies', { name: 'Z', parent_company_id: below.id })
    await merge('companies', upper.id, lowest.id)
    assert.equal(await parentOf(upper.id), null)
  })

  it('points from the loser to the winner, also after further merges', async () => {
    const [a, b, c] = await Promise.all(
      ['A', 'B', 'C'].map((name) => records.create('notes', { body: name })),
    )
    await merge('notes', b!.id, a!.id)
    await merge('notes', c!.id, b!.id)
    for (const id of [a!.id, b!.id])
      for (const attempt of [
        () => records.get('notes', id),
        () => records.update('notes', id, { body: 'x' }),
        () => records.delete('notes', id),
        () => records.restore('notes', id),
        () => merge('notes', c!.id, id),
        () => merge('notes', id, c!.id),
        () => history('notes', id),
      ])
        await assert.rejects(attempt, (error: AppError) => {
          assert.equal(error.type, 'not_found')
          assert.equal(error.details.merged_into, c!.id)
          return true
        })
    await assert.rejects(
      records.get('tasks', a!.id),
      (error: AppError) => error.details.merged_into === undefined,
    )
  })

  it('redirects the references of records that are restored later', async () => {
    const [a, b] = await Promise.all(['A', 'B'].map((name) => records.create('companies', { name })))
    const { id } = await records.create('contacts', { first_name: 'C', company_id: a!.id })
    await records.delete('contacts', id)
    await merge('companies', b!.id, a!.id)
    assert.equal((await records.restore('contacts', id)).company_id, b!.id)
    assert.deepEqual(await related(id), [b!.id])
  })

  it('combines the histories of both', async () => {
    const [a, b, c] = await Promise.all(
      ['A', 'B', 'C'].map((name) => records.create('notes', { body: name })),
    )
    await records.update('notes', a!.id, { body: 'A2', custom_fields: { x: 1 } })
    await merge('notes', b!.id, a!.id)
    await merge('notes', c!.id, b!.id)
    const entries = await history('notes', c!.id)
    const of = (id: string) =>
      entries.filter(({ record_id }) => record_id === id).map(({ action, version }) => [action, version])
    assert.deepEqual(of(a!.id), [
      ['created', 1],
      ['updated', 2],
      ['deleted', 3],
    ])
    assert.deepEqual(of(b!.id), [
      ['created', 1],
      ['merged', 2],
      ['deleted', 3],
    ])
    assert.deepEqual(of(c!.id), [
      ['created', 1],
      ['merged', 2],
    ])
    assert.deepEqual(
      entries.filter(({ action }) => action === 'merged').map(({ merged_from }) => merged_from),
      [a!.id, b!.id],
    )
    assert.deepEqual(entries.find(({ action }) => action === 'updated')!.changes, {
      body: { from: 'A', to: 'A2' },
      'custom_fields.x': { from: null, to: 1 },
    })
  })

  it('raises events for the merge, the update and the delete', async () => {
    const winner = await records.create('contacts', { first_name: 'W' })
    const loser = await records.create('contacts', { first_name: 'L', last_name: 'M' })
    const record = await merge('contacts', winner.id, loser.id)
    const [updated, merged] = (await records.eventsOf(winner.id)).slice(1)
    assert.deepEqual(
      [updated.name, updated.previous, updated.data],
      ['contact.updated', { last_name: null }, record],
    )
    assert.deepEqual([merged.name, merged.data], ['contact.merged', { ...record, merged_from: loser.id }])
    assert.equal((await records.eventsOf(loser.id)).at(-1).name, 'contact.deleted')
  })

  it('refuses the same record, a missing record and another version, and changes nothing', async () => {
    const winner = await records.create('contacts', { first_name: 'W' })
    const loser = await records.create('contacts', { first_name: 'L' })
    const type = (expected: string) => (error: AppError) => error.type === expected
    await assert.rejects(merge('contacts', winner.id, winner.id), type('validation_error'))
    await assert.rejects(merge('contacts', winner.id, crypto.randomUUID()), type('not_found'))
    await assert.rejects(merge('contacts', crypto.randomUUID(), loser.id), type('not_found'))
    await assert.rejects(merge('companies', winner.id, loser.id), type('not_found'))
    await assert.rejects(merge('contacts', winner.id, loser.id, 2), type('version_conflict'))
    await records.update('contacts', loser.id, {
      custom_fields: Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`a${i}`, i])),
    })
    await records.update('contacts', winner.id, {
      custom_fields: Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`b${i}`, i])),
    })
    await assert.rejects(merge('contacts', winner.id, loser.id), type('validation_error'))
    assert.equal((await records.get('contacts', loser.id)).version, 2)
  })

  it('runs once for two concurrent requests in either direction', async () => {
    const winner = await records.create('contacts', { first_name: 'W' })
    const loser = await records.create('contacts', { first_name: 'L' })
    const done = await Promise.allSettled([
      merge('contacts', winner.id, loser.id),
      merge('contacts', loser.id, winner.id),
    ])
    assert.deepEqual(done.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    assert.equal((await records.list('contacts')).data.length, 1)
  })

  it('names no values of another record, where one of several has a key that is taken', async () => {
    const [winner, loser] = await Promise.all(
      ['W', 'L'].map((first_name) => records.create('contacts', { first_name })),
    )
    const consent = (contact: AgxRecord, purpose: string) =>
      records.create('consents', { contact_id: contact.id, purpose, state: 'granted' })
    await consent(winner!, 'taken')
    const all = [await consent(loser!, 'free'), await consent(loser!, 'taken')]
    const move = (some: AgxRecord[]) =>
      records.tenant((tx) =>
        updateSet(
          tx,
          'consents',
          some.map(({ id }) => ({ id, patch: { contact_id: winner!.id } })),
        ),
      )
    await assert.rejects(move(all), /the contact has another consent with the same purpose, channel/)
    await assert.rejects(move(all.slice(1)), /another consent with purpose taken, channel any/)
  })
})
