import assert from 'node:assert/strict'
import fc from 'fast-check'
import { encodeCursor } from '../../../db/model/lists/cursor.ts'
import type { Operator } from '../../../db/model/records/field-types.ts'
import { parseFilter } from '../../../db/model/records/filters.ts'
import { kinds } from '../../../db/model/records/kinds/index.ts'
import type { AgxRecord, RecordInput } from '../../../db/model/records/schemas.ts'
import type { ListQuery } from '../../../db/records/list.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type Comparable, comparable, compare, holds } from '../../support/filter-oracle.ts'
import { filtersOf, recordsOf, type TestRecords } from '../../support/records.ts'

/** Lists are compared with the same query over an array. ASCII only: PostgreSQL orders other characters differently. */
const SORTS = [
  'name',
  'industry',
  'employee_count',
  'annual_revenue',
  'created_at',
  'custom_fields.tier',
] as const

describe('lists of records', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('filter, sort and page like an array in memory', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(companyFields, { minLength: 1, maxLength: 8 }),
        fc.array(filterOf, { maxLength: 3 }),
        fc.constantFrom(...SORTS),
        fc.constantFrom('asc' as const, 'desc' as const),
        fc.constantFrom('all' as const, 'any' as const),
        fc.integer({ min: 1, max: 4 }),
        async (companies, filters, sort, order, match, limit) => {
          const records = recordsOf(db, await createOrganization(db))
          const all: AgxRecord[] = []
          for (const fields of companies) all.push(await records.create('companies', fields))
          const parsed = filters.flatMap(([parameter, value]) =>
            filtersOf('companies', { [parameter]: value }),
          )
          const query = { filters: parsed, sort, order, match, limit }
          const expected = all
            .filter((record) => matches(record, filters, match))
            .sort(by(sort, order))
            .map(({ id }) => id)

          const walked = await walk(records, query)
          assert.deepEqual(walked.ids, expected)
          assert.deepEqual(new Set(walked.totals), new Set([expected.length]))
          const offset = Math.min(2, expected.length)
          const page = await records.list('companies', { ...query, offset })
          assert.deepEqual(
            page.data.map(({ id }) => id),
            expected.slice(offset, offset + limit),
          )
          assert.equal(page.has_more, expected.length > offset + limit)
          assert.equal(page.total, expected.length)
        },
      ),
      { numRuns: 50 },
    )
  })

  describe('filters', () => {
    let records: TestRecords
    let found: (parameters: Record<string, string>) => Promise<unknown[]>
    before(async () => {
      records = recordsOf(db, await createOrganization(db))
      found = async (parameters) => {
        const page = await records.list('contacts', {
          filters: filtersOf('contacts', parameters),
          order: 'asc',
        })
        return page.data.map(({ first_name }) => first_name)
      }
      const company = await records.create('companies', { name: 'Acme' })
      await records.create('contacts', {
        first_name: 'Ada',
        email: 'Ada@Example.com',
        tags: ['VIP', 'a,b'],
        company_id: company.id,
        custom_fields: { tier: 'Gold', score: 5, list: ['X', 7, true], note: '50% off_now' },
        last_contacted_at: '2026-01-31T10:00:00Z',
      })
      await records.create('contacts', {
        first_name: 'Éva',
        do_not_contact: true,
        custom_fields: { tier: null },
      })
      await records.create('contacts', { first_name: 'Ünal, B', job_title: 'Say "hi"' })
    })

    const cases: [parameters: Record<string, string>, names: string[]][] = [
      [{ email: 'ada@example.COM' }, ['Ada']],
      [{ 'email[contains]': 'EXAMPLE' }, ['Ada']],
      [{ 'email[ne]': 'ada@example.com' }, ['Éva', 'Ünal, B']],
      [{ first_name: 'éva' }, ['Éva']],
      [{ 'first_name[in]': '"ünal, b",ada' }, ['Ada', 'Ünal, B']],
      [{ job_title: 'say "HI"' }, ['Ünal, B']],
      [{ 'job_title[in]': '"Say ""hi"""' }, ['Ünal, B']],
      [{ 'job_title[in]': 'Say "hi"' }, ['Ünal, B']],
      [{ 'first_name[in]': ',ada,' }, ['Ada']],
      [{ 'tags[has]': 'vip' }, ['Ada']],
      [{ 'tags[has]': 'a,b' }, ['Ada']],
      [{ 'tags[is_null]': 'true' }, ['Éva', 'Ünal, B']],
      [{ 'custom_fields.tier': 'gold' }, ['Ada']],
      [{ 'custom_fields.tier[is_null]': 'true' }, ['Éva', 'Ünal, B']],
      [{ 'custom_fields.tier[nin]': 'gold,silver' }, ['Éva', 'Ünal, B']],
      [{ 'custom_fields.score': '5' }, ['Ada']],
      [{ 'custom_fields.score[has]': '5' }, ['Ada']],
      [{ 'custom_fields.list[has]': 'x' }, ['Ada']],
      [{ 'custom_fields.list[has]': '7' }, ['Ada']],
      [{ 'custom_fields.list[has]': 'true' }, ['Ada']],
      [{ 'custom_fields.list[has]': 'nothing' }, []],
      [{ 'custom_fields.note[contains]': '50%' }, ['Ada']],
      [{ 'custom_fields.note[contains]': 'off%now' }, []],
      [{ 'custom_fields.note[starts_with]': '50_' }, []],
      [{ 'company_id[is_null]': 'false' }, ['Ada']],
      [{ do_not_contact: 'true' }, ['Éva']],
      [{ 'do_not_contact[ne]': 'true' }, ['Ada', 'Ünal, B']],
      [{ 'last_contacted_at[between]': '2026-01-31,2026-02-01' }, ['Ada']],
      [{ 'last_contacted_at[gt]': '2026-01-31T11:00:00+01:00' }, []],
      [{ last_contacted_at: '2026-01-31' }, ['Ada']],
      [{ 'last_contacted_at[ne]': '2026-01-31' }, ['Éva', 'Ünal, B']],
      [{ 'last_contacted_at[in]': '2026-01-30,2026-01-31' }, ['Ada']],
      [{ 'last_contacted_at[nin]': '2026-01-31,2026-02-01T00:00:00Z' }, ['Éva', 'Ünal, B']],
      [{ 'last_contacted_at[between]': '2026-01-31,2026-01-31' }, ['Ada']],
      [{ 'last_contacted_at[between]': '2026-01-31T10:00:00Z,2026-01-31' }, ['Ada']],
      [{ 'last_contacted_at[lte]': '2026-01-31' }, ['Ada']],
      [{ 'last_contacted_at[lt]': '2026-01-31' }, []],
      [{ 'last_contacted_at[gte]': '2026-01-31' }, ['Ada']],
      [{ 'last_contacted_at[gt]': '2026-01-31' }, []],
      [{ 'last_contacted_at[gt]': '2026-01-30' }, ['Ada']],
      [{ 'created_at[gte]': '2020-01-01', 'email[is_null]': 'true' }, ['Éva', 'Ünal, B']],
    ]
    for (const [parameters, names] of cases)
      it(new URLSearchParams(parameters).toString(), async () => {
        assert.deepEqual(await found(parameters), names)
      })

    const wrong: [parameter: string, value: string][] = [
      ['middle_name', 'x'],
      ['custom_fields.', 'x'],
      ["custom_fields.a'b", 'x'],
      ['first_name[like]', 'x'],
      ['do_not_contact[gt]', 'true'],
      ['address', 'x'],
      ['tags', 'vip'],
      ['company_id', 'acme'],
      ['company_id[is_null]', 'yes'],
      ['version', '1e3'],
      ['created_at[gte]', '0000-01-01'],
      ['created_at[gte]', 'next tuesday'],
      ['created_at[between]', '2026-01-01'],
      ['first_name', 'a\0'],
      ['tags[has]', 'a\0'],
      ['custom_fields.a[has]', '\0'],
      ['__proto__', 'x'],
      ['constructor', 'x'],
    ]
    for (const [parameter, value] of wrong)
      it(`refuse ${parameter}=${JSON.stringify(value)}`, () => {
        assert.ok('msg' in parseFilter(kinds.contacts, parameter, value))
      })

    it('name the known fields for an unknown one', () => {
      const issue = parseFilter(kinds.contacts, 'middle_name', 'x')
      assert.match('msg' in issue ? issue.hint! : '', /first_name.*custom_fields/)
    })

    it('take the space that URL decoding makes of a plus sign in an address for that plus sign', () => {
      const filter = parseFilter(kinds.contacts, 'email', 'a b@x.example')
      assert.deepEqual('values' in filter && filter.values, ['a+b@x.example'])
    })

    it('find an external_id as it is unique: in upper and lower case', async () => {
      for (const external_id of ['003Ab', '003aB'])
        await records.create('deals', { name: external_id, external_id })
      for (const [parameters, names] of [
        [{ external_id: '003aB' }, ['003aB']],
        [{ 'external_id[in]': '003AB,003Ab' }, ['003Ab']],
        [{ 'external_id[ne]': '003aB' }, ['003Ab']],
        [{ 'external_id[starts_with]': '003ab' }, ['003Ab', '003aB']],
      ] as const) {
        const { data } = await records.list('deals', {
          filters: filtersOf('deals', parameters),
          order: 'asc',
        })
        assert.deepEqual(
          data.map(({ name }) => name),
          names,
        )
      }
    })

    it('find values in any accepted form', async () => {
      const written = {
        name: ' Acme  Inc ',
        domain: 'https://www.Acme.example/about',
        website: 'acme.example/about',
        phone: '+41 44 668 18 00',
        email: ' Info@Acme.example ',
        currency: 'chf',
        external_id: ' x 1 ',
      }
      const { id } = await records.create('companies', written)
      await records.create('companies', { name: 'Other', domain: 'other.example', phone: '044 668 18 00' })
      const ids = async (parameter: string, value: string) => {
        const filters = filtersOf('companies', { [parameter]: value })
        return (await records.list('companies', { filters })).data.map((record) => record.id)
      }
      for (const [name, value] of Object.entries(written)) {
        assert.deepEqual(await ids(name, value), [id], name)
        assert.deepEqual(await ids(`${name}[in]`, `nothing,${value}`), [id], name)
        assert.ok(!(await ids(`${name}[ne]`, value)).includes(id), name)
        assert.ok(!(await ids(`${name}[nin]`, `nothing,${value}`)).includes(id), name)
      }
      assert.deepEqual(await ids('phone', ' 41446681800'), [id], 'a + that was not encoded')
      assert.deepEqual(await ids('phone[starts_with]', ' 4144'), [id])
      assert.equal((await ids('phone', '044 668 18 00')).length, 1)
      assert.deepEqual(await ids('domain', 'no domain'), [])
    })

    it('are refused if a double quote is not closed', () => {
      for (const value of ['"x1"junk,y2', '"x1', 'y2,"x1', '"x1" ,y2', '"', '"a""'])
        for (const parameter of ['first_name[in]', 'first_name[nin]', 'first_name[between]']) {
          const issue = parseFilter(kinds.contacts, parameter, value)
          assert.match('msg' in issue ? issue.msg : '', /double quote/, `${parameter}=${value}`)
          assert.match('msg' in issue ? issue.hint! : '', /"Smith, Ltd",Acme/)
        }
    })

    it('never cause an error of PostgreSQL', async () => {
      const fields = [...Object.keys(kinds.contacts.fields), 'id', 'version', 'tags', 'custom_fields.list']
      const operators = [
        'eq',
        'ne',
        'gt',
        'lte',
        'between',
        'in',
        'nin',
        'contains',
        'starts_with',
        'is_null',
        'has',
      ]
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...fields),
          fc.constantFrom(...operators),
          fc.oneof(
            fc.string({ unit: 'binary' }),
            fc.double().map(String),
            fc.bigInt().map(String),
            fc.constantFrom('true', '2026-01-01', '9999-12-31T23:59:59-14:00', '\\', '\ud800', ',', '"'),
          ),
          async (field, operator, value) => {
            const filter = parseFilter(kinds.contacts, `${field}[${operator}]`, value)
            if (!('msg' in filter)) await records.list('contacts', { filters: [filter] })
          },
        ),
        { numRuns: 200 },
      )
    })
  })

  it('find records by what they are associated with, and by their last activity', async () => {
    const records = recordsOf(db, await createOrganization(db))
    const contact = async (first_name: string, fields: object = {}) =>
      (await records.create('contacts', { first_name, ...fields })).id
    const deal = await records.create('deals', { name: 'First' })
    const other = await records.create('deals', { name: 'Second' })
    const ada = await contact('Ada', { tags: ['vip', 'Old'] })
    const ben = await contact('Ben', { tags: ['vip'] })
    const cyd = await contact('Cyd')
    // From either end.
    await records.link('contacts', ada, 'deals', deal.id)
    await records.link('deals', other.id, 'contacts', ben)
    await records.link('contacts', ada, 'contacts', ben)
    const activity = async (id: string, occurred_at: string, fields: object = {}) => {
      const { id: made } = await records.create('activities', { type: 'call', occurred_at, ...fields })
      await records.link('activities', made, 'contacts', id)
      return made
    }
    await activity(ada, '2026-01-10T12:00:00Z')
    const last = await activity(ada, '2026-02-10T12:00:00Z')
    await activity(ben, '2026-01-05T12:00:00Z')
    await activity(ben, '2026-03-01T12:00:00Z', { status: 'planned' })
    await activity(ben, '2126-03-01T12:00:00Z')
    const found = async (parameters: Record<string, string>, query: Partial<ListQuery> = {}) => {
      const filters = filtersOf('contacts', parameters)
      const page = await records.list('contacts', { ...query, filters, sort: 'first_name', order: 'asc' })
      assert.equal(page.total, page.data.length)
      return page.data.map(({ first_name }) => first_name).join(' ')
    }
    const cases: [Record<string, string>, string][] = [
      [{ 'associations.deals': deal.id }, 'Ada'],
      [{ 'associations.deals[ne]': deal.id }, 'Ben Cyd'],
      [{ 'associations.deals[in]': `${deal.id},${other.id}` }, 'Ada Ben'],
      [{ 'associations.deals[nin]': `${deal.id},${other.id}` }, 'Cyd'],
      [{ 'associations.deals[is_null]': 'true' }, 'Cyd'],
      [{ 'associations.deals[is_null]': 'false' }, 'Ada Ben'],
      [{ 'associations.contacts': ada }, 'Ben'],
      [{ 'associations.contacts': ben }, 'Ada'],
      [{ 'associations.contacts': cyd }, ''],
      [{ 'associations.notes[is_null]': 'true' }, 'Ada Ben Cyd'],
      [{ 'tags[has_not]': 'old' }, 'Ben Cyd'],
      [{ 'tags[has]': 'VIP', 'tags[has_not]': 'OLD' }, 'Ben'],
      [{ 'custom_fields.tier[has_not]': 'gold' }, 'Ada Ben Cyd'],
      [{ 'last_activity_at[gte]': '2026-02-01' }, 'Ada'],
      [{ 'last_activity_at[between]': '2026-01-01,2026-01-31' }, 'Ben'],
      [{ 'last_activity_at[lt]': '2026-02-01' }, 'Ben'],
      [{ 'last_activity_at[not_since]': '2026-02-01' }, 'Ben Cyd'],
      [{ 'last_activity_at[not_since]': 'last_7_days' }, 'Ada Ben Cyd'],
      [{ 'last_activity_at[is_null]': 'true' }, 'Cyd'],
      [{ 'last_contacted_at[not_since]': '2026-01-01' }, 'Ada Ben Cyd'],
    ]
    for (const [parameters, names] of cases) {
      assert.equal(await found(parameters), names, JSON.stringify(parameters))
      assert.equal(await found(parameters, { q: 'a' }), names.includes('Ada') ? 'Ada' : '', 'with q')
    }
    await records.delete('activities', last)
    assert.equal(await found({ 'last_activity_at[gte]': '2026-02-01' }), '')
    // Another organization's record is associated with none of these.
    const foreign = await recordsOf(db, await createOrganization(db)).create('deals', { name: 'Other' })
    assert.equal(await found({ 'associations.deals': foreign.id }), '')
    for (const kind of ['tasks', 'notes'] as const)
      assert.match(
        String(Reflect.get(parseFilter(kinds[kind], 'last_activity_at[gte]', '2026-01-01'), 'msg')),
        /unknown/,
      )
    const near = parseFilter(kinds.contacts, 'associations.company', deal.id)
    assert.match(String(Reflect.get(near, 'hint')), /^did you mean associations\.companies\?/)
  })

  describe('cursors', () => {
    it('are refused with another query, and if forged', async () => {
      const records = recordsOf(db, await createOrganization(db))
      for (const name of ['A', 'B', 'C']) await records.create('companies', { name, employee_count: 1 })
      const refused = (query: Partial<ListQuery>) =>
        assert.rejects(records.list('companies', query), (error: { type?: string }) => {
          assert.equal(error.type, 'invalid_request')
          return true
        })
      for (const sort of [
        'name',
        'employee_count',
        'annual_revenue',
        'created_at',
        'id',
        'custom_fields.a',
      ]) {
        const query = { sort, limit: 1 }
        const { next_cursor, data } = await records.list('companies', query)
        await records.list('companies', { ...query, cursor: next_cursor! })
        await refused({ ...query, order: 'asc', cursor: next_cursor! })
        await refused({ ...query, q: 'a', cursor: next_cursor! })
        await refused({ ...query, filters: filtersOf('companies', { name: 'a' }), cursor: next_cursor! })
        const [hash] = JSON.parse(Buffer.from(next_cursor!, 'base64url').toString())
        const id = data[0]!.id
        const forged: unknown[] = ['\0', ['x'], {}, 5, true]
        if (!['name', 'custom_fields.a'].includes(sort)) forged.push('x', '', '1e999', '99999999999999999999')
        for (const value of forged)
          await refused({ ...query, cursor: encodeCursor(hash, { value: value as string, id }) })
        await refused({ ...query, cursor: encodeCursor(hash, { value: null, id: 'x' }) })
      }
      for (const cursor of ['x', '', '%', Buffer.from('null').toString('base64url')].filter(Boolean))
        await refused({ cursor })
    })

    it('return every unchanged record exactly once during concurrent writes and deletes', async () => {
      const records = recordsOf(db, await createOrganization(db))
      const stay: string[] = []
      const go: string[] = []
      for (let i = 0; i < 24; i++) {
        const { id } = await records.create('contacts', { first_name: `N${i % 5}` })
        ;(i % 3 === 0 ? go : stay).push(id)
      }
      for (const sort of ['created_at', 'first_name'])
        for (const order of ['asc', 'desc'] as const) {
          const seen: string[] = []
          let cursor: string | undefined
          do {
            const page = await records.list('contacts', { sort, order, limit: 3, cursor })
            seen.push(...page.data.map(({ id }) => id))
            cursor = page.next_cursor ?? undefined
            await records.create('contacts', { first_name: `N${seen.length % 5}`, external_id: null })
            const gone = go.pop()
            if (gone) await records.delete('contacts', gone)
          } while (cursor && seen.length < 200)
          const once = seen.filter((id) => stay.includes(id))
          assert.deepEqual(once.toSorted(), stay.toSorted())
          assert.equal(new Set(seen).size, seen.length)
        }
    })

    it('work for long texts', async () => {
      const records = recordsOf(db, await createOrganization(db))
      const description = 'é'.repeat(9_000)
      for (const name of ['A', 'B', 'C']) await records.create('companies', { name, description })
      const { ids, cursors } = await walk(records, { sort: 'description', limit: 1 })
      assert.equal(new Set(ids).size, 3)
      for (const cursor of cursors) assert.ok(cursor.length < 2_000)
    })
  })

  it('estimate only large totals, and count nothing with `count` none', async () => {
    const records = recordsOf(db, await createOrganization(db))
    for (const name of ['A', 'B', 'C']) await records.create('companies', { name })
    const totals = async (query: Partial<ListQuery>) => {
      const { total, total_is_estimate } = await records.list('companies', query)
      return [total, total_is_estimate]
    }
    assert.deepEqual(await totals({ count: 'estimated', limit: 1 }), [3, false])
    assert.deepEqual(await totals({ count: 'none', limit: 1 }), [null, false])
    assert.deepEqual(await totals({ count: 'exact', offset: 5 }), [3, false])
    assert.deepEqual(await totals({ count: 'exact', offset: 2 }), [3, false])
  })
})

async function walk(records: TestRecords, query: Partial<ListQuery>) {
  const ids: string[] = []
  const totals: (number | null)[] = []
  const cursors: string[] = []
  let cursor: string | undefined
  do {
    const page = await records.list('companies', { ...query, cursor })
    ids.push(...page.data.map(({ id }) => id))
    totals.push(page.total)
    cursor = page.next_cursor ?? undefined
    if (cursor) cursors.push(cursor)
  } while (cursor)
  return { ids, totals, cursors }
}

const word = fc.constantFrom('ape', 'Bee', 'CAT', 'bee')
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
const companyFields: fc.Arbitrary<RecordInput> = fc.record({
  name: word,
  industry: maybe(word),
  employee_count: maybe(fc.nat(4)),
  annual_revenue: maybe(fc.constantFrom('1', '9.5', '10', '-2')),
  tags: fc.subarray(['ape', 'Bee']),
  custom_fields: fc.record({ tier: maybe(word) }),
})

type Given = [parameter: string, value: string]

const filterOf: fc.Arbitrary<Given> = fc
  .oneof(
    fc.tuple(
      fc.constantFrom('name', 'industry', 'custom_fields.tier'),
      fc.constantFrom('eq', 'ne', 'gt', 'lte', 'contains', 'starts_with'),
      fc.constantFrom('bee', 'B', 'a'),
    ),
    fc.tuple(
      fc.constantFrom('name', 'industry', 'custom_fields.tier'),
      fc.constantFrom('in', 'nin', 'between'),
      fc.constantFrom('ape,bee', 'bee,CAT'),
    ),
    fc.tuple(
      fc.constantFrom('employee_count', 'annual_revenue'),
      fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte'),
      fc.constantFrom('1', '2', '10'),
    ),
    fc.tuple(
      fc.constantFrom('industry', 'employee_count', 'custom_fields.tier'),
      fc.constant('is_null'),
      fc.constantFrom('true', 'false'),
    ),
    fc.tuple(fc.constant('tags'), fc.constant('has'), fc.constantFrom('ape', 'bee')),
  )
  .map(([field, operator, value]) => [`${field}[${operator}]`, value])

function valueAt(record: AgxRecord, field: string): Comparable {
  const [, custom] = field.split('.')
  const value = custom ? (record.custom_fields as Record<string, unknown>)[custom] : record[field]
  // Money is text.
  return comparable(value && ['employee_count', 'annual_revenue'].includes(field) ? Number(value) : value)
}

function matches(record: AgxRecord, filters: Given[], match: 'all' | 'any'): boolean {
  if (filters.length === 0) return true
  const one = ([parameter, given]: Given): boolean => {
    const [, field, operator] = /^(.+)\[(.+)\]$/.exec(parameter) as unknown as [string, string, Operator]
    const value = valueAt(record, field)
    if (operator === 'is_null') return holds(value, operator, [given === 'true'])
    const read = (text: string) => (typeof value === 'number' ? Number(text) : text.toLowerCase())
    return holds(value, operator, given.split(',').map(read))
  }
  return match === 'all' ? filters.every(one) : filters.some(one)
}

/** Nulls last in both directions, ties by id. */
function by(sort: string, order: 'asc' | 'desc') {
  const sign = order === 'asc' ? 1 : -1
  return (one: AgxRecord, two: AgxRecord): number => {
    const [a, b] = [valueAt(one, sort), valueAt(two, sort)]
    if (a !== b) {
      if (a === null) return 1
      if (b === null) return -1
      return compare(a, b) * sign
    }
    return one.id < two.id ? -sign : sign
  }
}
