import assert from 'node:assert/strict'
import { recordsIn } from '../../../activities/effects/records.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('record effects of nodes', () => {
  let db: TestDatabase
  let organization: string
  before(async () => {
    db = await createTestDatabase()
    organization = await createOrganization(db)
  })
  after(() => db?.drop())

  it('search with at most the values of one statement; more fail the node permanently', async () => {
    const search = (filters: Record<string, unknown>) =>
      db.tenant(organization, testActor, (tx) => recordsIn(tx).search('contacts', { filters }))
    const emails = (count: number) => Array.from({ length: count }, (_, i) => `n${i}@example.com`)
    assert.deepEqual((await search({ 'email[in]': emails(10_000) })).data, [])
    await assert.rejects(search({ 'email[in]': emails(70_000) }), { code: 'validation_error' })
    const many = Object.fromEntries(emails(51).map((_, i) => [`custom_fields.f${i}`, 'x']))
    await assert.rejects(search(many), { code: 'validation_error' })
  })

  it('search for no text finds nothing, as for null', async () => {
    const found = await db.tenant(organization, testActor, async (tx) => {
      const records = recordsIn(tx)
      const names = ['Anything Ltd', 'Annuller Ltd', 'Null']
      for (const name of names) await records.create('companies', { name, tags: [name] })
      const company = (await records.search('companies', { filters: { name: 'Null' } })).data[0]
      await records.create('contacts', { first_name: 'Ada', company_id: company?.id })
      const search = async (parameter: string, value: unknown) =>
        (await records.search('companies', { filters: { [parameter]: value } })).data.length
      const counts: number[] = []
      for (const parameter of ['name[contains]', 'name[starts_with]'])
        for (const value of ['', ' ', null, [], [null]]) counts.push(await search(parameter, value))
      for (const parameter of ['name', 'name[in]', 'tags[has]']) counts.push(await search(parameter, null))
      counts.push(await search('name[in]', [null]), await search('name[in]', []))
      const related = { 'company.name[contains]': '' }
      counts.push((await records.search('contacts', { filters: related })).data.length)
      return [
        ...counts,
        await search('name[contains]', 'thing'),
        await search('name[contains]', 'null'),
        await search('name[nin]', [null]),
        await search('name[in]', [null, 'Null']),
      ]
    })
    assert.deepEqual(found, [...Array(16).fill(0), 1, 2, 3, 1])
  })

  it('write whole numbers as texts where a text is stored, as ids and phone numbers of others are', async () => {
    const found = await db.tenant(organization, testActor, async (tx) => {
      const records = recordsIn(tx)
      const made = await records.upsert('contacts', 'external_id', { first_name: 'Num', external_id: 41 })
      const again = await records.upsert('contacts', 'external_id', { external_id: 41, phone: 791234569 })
      const { id } = made.record
      const changed = await records.update('contacts', String(id), { external_id: 42 })
      const created = await records.create('companies', { name: 1848, external_id: 9007199254740991 })
      return [
        [made.created, made.record.external_id],
        [again.created, again.record.id === id, again.record.phone],
        changed.external_id,
        [created.name, created.external_id],
      ]
    })
    assert.deepEqual(found, [[true, '41'], [false, true, '791234569'], '42', ['1848', '9007199254740991']])
    for (const fields of [
      { first_name: 'A', external_id: 1.5 },
      { first_name: 'A', external_id: 2 ** 53 },
    ])
      await assert.rejects(
        db.tenant(organization, testActor, (tx) => recordsIn(tx).create('contacts', fields)),
        /external_id/,
      )
  })

  it('search page by page by id, also records of the same millisecond', async () => {
    const titles = Array.from({ length: 7 }, (_, index) => `Page ${index}`)
    const found = await db.tenant(organization, testActor, async (tx) => {
      const records = recordsIn(tx)
      // One transaction: all have the same time.
      for (const title of titles) await records.create('tasks', { title })
      const seen: unknown[] = []
      for (let last: unknown; ; ) {
        const filters = last === undefined ? {} : { 'id[gt]': last }
        const page = await records.search('tasks', { filters, sort: 'id', order: 'asc', limit: 3 })
        const data = page.data as { id: string; title: string }[]
        seen.push(...data.map(({ title }) => title))
        if (!page.has_more) return seen
        last = data.at(-1)!.id
      }
    })
    assert.deepEqual(found, titles)
  })

  it('upsert with fields of a create or an update only: with the key alone, it finds or creates', async () => {
    const upsert = (fields: object, only: object) =>
      db.tenant(organization, testActor, (tx) =>
        recordsIn(tx).upsert('contacts', 'email', { email: 'once@example.com', ...fields }, only),
      )
    const only = {
      on_create: { lead_source: 'form', lead_status: 'new' },
      on_update: { lead_status: 'open', first_name: 'Ada' },
    }
    const first = await upsert({}, only)
    const { lead_source, lead_status, first_name } = first.record
    assert.deepEqual([first.created, lead_source, lead_status, first_name], [true, 'form', 'new', null])
    const second = await upsert({ last_name: 'Lovelace' }, only)
    const { record } = second
    assert.deepEqual(
      [second.created, record.lead_source, record.lead_status, record.first_name, record.last_name],
      [false, 'form', 'open', 'Ada', 'Lovelace'],
    )
    const found = await upsert({}, { on_create: { first_name: 'Bob' } })
    assert.deepEqual([found.created, found.record], [false, record])
    const key = { email: 'race@example.com' }
    const raced = await Promise.all(
      ['a', 'b', 'c', 'd'].map((first_name) =>
        db.tenant(organization, testActor, (tx) =>
          recordsIn(tx).upsert('contacts', 'email', key, { on_create: { first_name } }),
        ),
      ),
    )
    assert.equal(raced.filter(({ created }) => created).length, 1)
    assert.equal(new Set(raced.map(({ record }) => `${record.id} ${record.first_name}`)).size, 1)
  })
})
