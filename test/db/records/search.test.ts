import assert from 'node:assert/strict'
import fc from 'fast-check'
import { searchPatterns, searchText } from '../../../db/model/records/search-text.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { filtersOf, recordsOf, type TestRecords } from '../../support/records.ts'

describe('free-text search', () => {
  let db: TestDatabase
  let records: TestRecords
  const found = async (q: string) =>
    (await records.list('contacts', { q, order: 'asc' })).data.map(({ first_name }) => first_name)

  before(async () => {
    db = await createTestDatabase()
    records = recordsOf(db, await createOrganization(db))
    await records.create('contacts', {
      first_name: 'Ann',
      last_name: 'Łukasz-Müller',
      email: 'ann.l@acme.io',
      phone: '+41446681800',
      address: { city: 'Tromsø' },
      tags: ['Early Bird'],
      external_id: 'CRM/4711',
      custom_fields: { note: '100%_sure', score: 1250, list: ['Straße', 'æther'] },
    })
    await records.create('contacts', { first_name: 'Bea', job_title: 'Macadam layer' })
    await records.create('contacts', { first_name: 'Cay', last_name: 'O’Brien', phone: '+49305551234' })
    await records.create('contacts', {
      first_name: 'Dee',
      last_name: 'Mueller-Jung',
      phone: '030 / 777 12 34',
    })
  })
  after(() => db.drop())

  const cases: [q: string, names: string[]][] = [
    ['ann', ['Ann']],
    ['ANN MÜLLER', ['Ann']],
    ['muller ann', ['Ann']],
    ['lukasz', ['Ann']],
    ['tromso', ['Ann']],
    ['strasse', ['Ann']],
    ['STRASSE aether', ['Ann']],
    ['ann bea', []],
    ['cme.i', ['Ann']],
    ['6681', ['Ann']],
    // Phone numbers are stored as E.164, and found in other notations.
    ['+41 (44) 668-18-00', ['Ann']],
    ['668.18.00', ['Ann']],
    ['669.18.00', []],
    ['12.50', []],
    ['044 668 18 00', ['Ann']],
    ['ann 0041 44 668 18 00', ['Ann']],
    ['bea 0041 44 668 18 00', []],
    ['030 5551234', ['Cay']],
    ['0305551234', ['Cay']],
    ['+49 (0)30 555-1234', ['Cay']],
    ['030 / 777 12 34', ['Dee']],
    ['777 12 34', ['Dee']],
    ["O'Brien", ['Cay']],
    ['o´brien', ['Cay']],
    // Umlauts are also written with an e.
    ['Mueller', ['Ann', 'Dee']],
    ['Müller', ['Ann', 'Dee']],
    ['Mueler', []],
    ['early', ['Ann']],
    ['4711', ['Ann']],
    ['1250', ['Ann']],
    ['100%', ['Ann']],
    ['100_', []],
    ['%%%', []],
    ['\\', []],
    // One or two letters match the start of a word, also after punctuation.
    ['ac', ['Ann']],
    ['io', ['Ann']],
    ['l', ['Ann', 'Bea']],
    ['+41', ['Ann']],
    ['cm', []],
    ['ma', ['Bea']],
    ['mac', ['Bea']],
    ['aca', ['Bea']],
    ['', ['Ann', 'Bea', 'Cay', 'Dee']],
    [' \0 ', ['Ann', 'Bea', 'Cay', 'Dee']],
    ["'; drop table contacts; --", []],
  ]
  for (const [q, names] of cases)
    it(`${JSON.stringify(q)} finds ${names.join(' and ') || 'nobody'}`, async () => {
      assert.deepEqual(await found(q), names)
    })

  it('also finds enum values, numbers, money and dates', async () => {
    const { id } = await records.create('deals', {
      name: 'Engine',
      stage: 'negotiation',
      amount: 4217,
      currency: 'CHF',
      probability: 63,
      expected_close_date: '2031-05-17',
    })
    for (const q of ['negotiation', '4217.00', 'chf', '63', '2031-05-17', 'engine nego 2031'])
      assert.deepEqual(
        (await records.list('deals', { q })).data.map((deal) => deal.id),
        [id],
        q,
      )
  })

  it('finds the last word of the longest note', async () => {
    const body = `${'lorem '.repeat(10_920)}finis`
    const custom_fields = { long: Array(6).fill('ipsum '.repeat(1_600)), last: 'ultimo' }
    const { id } = await records.create('notes', { body, custom_fields })
    assert.deepEqual(
      (await records.list('notes', { q: 'finis ultimo' })).data.map((note) => note.id),
      [id],
    )
  })

  it('finds a record by its new values at once, and not by its old ones', async () => {
    const { id } = await records.create('contacts', { first_name: 'Zoë' })
    assert.deepEqual(await found('zoe'), ['Zoë'])
    await records.update('contacts', id, { first_name: 'Quentin' })
    assert.deepEqual([await found('zoe'), await found('quen')], [[], ['Quentin']])
    await records.delete('contacts', id)
    assert.deepEqual(await found('quen'), [])
  })

  it('is required in addition to filters, even with `match` any', async () => {
    const query = {
      match: 'any' as const,
      filters: filtersOf('contacts', { first_name: 'Ann', job_title: 'x' }),
    }
    assert.equal((await records.list('contacts', { ...query, q: 'bea' })).total, 0)
    assert.equal((await records.list('contacts', { ...query, q: 'ann' })).total, 1)
  })

  it('finds every part of every word', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 30 }),
        fc.nat(),
        fc.nat(),
        (text, from, length) => {
          const words = text.split(/\s+/).filter(Boolean)
          if (words.length === 0) return
          const word = [...words[from % words.length]!]
          const part = word.slice(from % word.length, (from % word.length) + 3 + (length % 5)).join('')
          for (const [pattern] of searchPatterns(part)) {
            const plain = pattern!.slice(1, -1).replace(/\\(.)/g, '$1')
            const short = [...plain.trim()].length < 3
            assert.ok(short || searchText([text]).includes(plain), `${plain} in ${searchText([text])}`)
          }
        },
      ),
      { numRuns: 500 },
    )
  })

  it('gives the same result for a word too common for the text index', async () => {
    const many = recordsOf(db, await createOrganization(db))
    const { id } = await many.create('contacts', { first_name: 'Common', last_name: 'Last' })
    await many.create('contacts', { first_name: 'Rare' })
    await many.tenant((tx) =>
      tx.trx.raw(
        `insert into contacts (organization_id, id, first_name, do_not_contact, tags, custom_fields, version,
           created_at, updated_at, created_by, updated_by, search_text)
         select ?, gen_random_uuid(), 'Common', false, '{}', '{}', 1, now() + n * interval '1 ms', now(), '{}', '{}', ' common'
         from generate_series(1, 10100) n`,
        [tx.organizationId],
      ),
    )
    const page = await many.list('contacts', { q: 'comm', order: 'asc', limit: 2, count: 'estimated' })
    assert.equal(page.data[0]!.id, id)
    assert.equal(page.total_is_estimate, true)
    assert.ok(page.total! > 10_000)
    assert.equal((await many.list('contacts', { q: 'comm', limit: 2 })).total, 10_101)
    const rare = await many.list('contacts', { q: 'comm last', limit: 2 })
    assert.deepEqual([rare.data.map((record) => record.id), rare.total], [[id], 1])
  })

  it('finds rare, common and formerly common words among thousands of records, in order', async () => {
    const organization = await createOrganization(db)
    const many = recordsOf(db, organization)
    const NOTES = 12_000
    const OLD = 10_500
    const ids = Array.from(
      { length: NOTES },
      (_, i) => `00000000-0000-7000-8000-${String(i).padStart(12, '0')}`,
    )
    await many.tenant((tx) =>
      tx.trx.raw(
        `insert into notes (organization_id, id, body, format, pinned, tags, custom_fields, version, created_at,
           updated_at, created_by, updated_by, search_text)
         select ?, id, 'x', 'text', false, '{}', '{}', 1, now() + n * interval '1 s', now(), '{}', '{}',
           case when n <= ${OLD} then ' old' else ' new' end || case when n in (6, 7001) then ' rare' else '' end
         from unnest(?::uuid[]) with ordinality given (id, n)`,
        [organization, ids] as never,
      ),
    )
    const [oldest, newest] = [ids.slice(0, OLD), ids.slice(OLD)]
    const cases: [q: string, matching: string[]][] = [
      ['old', oldest],
      ['ol', oldest],
      ['new', newest],
      ['rare', [ids[5]!, ids[7_000]!]],
      ['old rare', [ids[5]!, ids[7_000]!]],
      ['new rare', []],
    ]
    for (const [q, matching] of cases)
      for (const order of ['asc', 'desc'] as const) {
        const expected = order === 'asc' ? matching : matching.toReversed()
        const seen: string[] = []
        let cursor: string | undefined
        for (let pages = 0; pages < 3; pages++) {
          const page = await many.list('notes', { q, order, limit: 5, cursor, count: 'estimated' })
          seen.push(...page.data.map(({ id }) => id))
          if (matching.length <= 10_000 && !page.total_is_estimate) assert.equal(page.total, matching.length)
          if (matching.length > 10_000) assert.ok(page.total_is_estimate && page.total! > 10_000)
          cursor = page.next_cursor ?? undefined
          if (!cursor) break
        }
        assert.deepEqual(seen, expected.slice(0, 15), `${q} ${order}`)
        const { total } = await many.list('notes', { q, limit: 5, count: 'exact' })
        assert.equal(total, matching.length)
      }
  })
})
