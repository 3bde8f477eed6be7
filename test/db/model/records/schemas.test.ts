import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Field, FieldType, KindName } from '../../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../../db/model/records/kinds/index.ts'
import { createSchema, type RecordInput, updateSchema } from '../../../../db/model/records/schemas.ts'
import { createRecord } from '../../../../db/records/create.ts'
import { getRecord } from '../../../../db/records/read.ts'
import { updateRecord } from '../../../../db/records/update.ts'
import {
  createMember,
  createOrganization,
  createTestDatabase,
  type TestDatabase,
} from '../../../support/database.ts'
import { ownersOf } from '../../../support/example-of.ts'
import { recordsOf } from '../../../support/records.ts'

const entityId = '01900000-0000-7000-8000-000000000000'

const contact = (fields: RecordInput) => createSchema('contacts').safeParse({ first_name: 'Ada', ...fields })
const company = (fields: RecordInput) => createSchema('companies').safeParse({ name: 'Acme', ...fields })
const deal = (fields: RecordInput) => createSchema('deals').safeParse({ name: 'Engine', ...fields })
const change = (fields: RecordInput) => updateSchema('contacts').safeParse(fields)

describe('record schemas', () => {
  for (const kind of kindNames) {
    const { example, object, fields } = kinds[kind]
    it(`accept the documented ${object}, under its own plural`, () => {
      assert.ok(createSchema(kind).safeParse(example).success)
      assert.equal(kinds[kind].entity, kind)
      for (const name of Object.keys(example)) assert.ok(fields[name], name)
    })
  }

  const read: [what: string, given: RecordInput, expected: RecordInput][] = [
    [
      'an upper-case id',
      { owner_id: '01900000-AAAA-7000-8000-00000000000F' },
      { owner_id: '01900000-aaaa-7000-8000-00000000000f' },
    ],
    ['a day', { last_contacted_at: '2026-01-31' }, { last_contacted_at: '2026-01-31' }],
    [
      'a time elsewhere',
      { last_contacted_at: '2026-01-31T01:00:00+02:00' },
      { last_contacted_at: '2026-01-30T23:00:00.000Z' },
    ],
    [
      'the last moment',
      { last_contacted_at: '9999-12-31T23:59:59.999Z' },
      { last_contacted_at: '9999-12-31T23:59:59.999Z' },
    ],
    [
      'a web address without scheme',
      { website: 'example.com/about' },
      { website: 'https://example.com/about' },
    ],
    [
      'an empty text',
      { email: ' ', phone: '', website: '', last_contacted_at: '', lead_status: '' },
      { email: null, phone: null, website: null, last_contacted_at: null, lead_status: null },
    ],
    [
      'null for a field with a default',
      { do_not_contact: null, tags: null, custom_fields: null },
      { do_not_contact: false, tags: [], custom_fields: {} },
    ],
    ['an invalid phone number', { phone: 'ask Ada' }, { phone: 'ask Ada' }],
    ['a phone number with spaces', { phone: ' +41 44 668 18 00 ' }, { phone: '+41446681800' }],
    [
      'a phone number with an extension',
      { phone: '+41 44 668 18 00 ext 5' },
      { phone: '+41 44 668 18 00 ext 5' },
    ],
    [
      'an extension in URI notation',
      { phone: '+1 (202) 555-0143;ext=7' },
      { phone: '+1 (202) 555-0143;ext=7' },
    ],
    [
      'an extension after an x',
      { mobile_phone: '+1 202 555 0143 x99' },
      { mobile_phone: '+1 202 555 0143 x99' },
    ],
  ]
  for (const [what, given, expected] of read)
    it(`read ${what}`, () => {
      const { data } = contact(given)
      for (const [name, value] of Object.entries(expected)) assert.deepEqual(data?.[name], value, name)
    })

  const readOfCompanies: [what: string, given: RecordInput, expected: RecordInput][] = [
    ['the host of an address', { domain: 'https://www.Acme.example/about?x=1' }, { domain: 'acme.example' }],
    ['a domain outside ASCII', { domain: 'Bücher.example' }, { domain: 'xn--bcher-kva.example' }],
    ['a currency in lower case', { currency: 'chf' }, { currency: 'CHF' }],
    ['money as a number', { annual_revenue: 12.5 }, { annual_revenue: '12.50' }],
    ['money with superfluous digits', { annual_revenue: '-007.100' }, { annual_revenue: '-7.10' }],
    ['a negative zero', { annual_revenue: '-0.0' }, { annual_revenue: '0.00' }],
    [
      'both names of a kind',
      {
        associations: [
          { object: 'contact', id: entityId },
          { object: 'contacts', id: entityId },
        ],
      },
      {
        associations: [
          { object: 'contacts', id: entityId },
          { object: 'contacts', id: entityId },
        ],
      },
    ],
  ]
  for (const [what, given, expected] of readOfCompanies)
    it(`read ${what}`, () => {
      const { data } = company(given)
      for (const [name, value] of Object.entries(expected)) assert.deepEqual(data?.[name], value, name)
    })

  const refused: [what: string, parsed: { success: boolean }][] = [
    ['the year 0', contact({ last_contacted_at: '0000-01-01' })],
    ['a time in the year 0 in UTC', contact({ last_contacted_at: '0001-01-01T00:00:00+01:00' })],
    ['a time in the year 10000 in UTC', contact({ last_contacted_at: '9999-12-31T23:59:59-14:00' })],
    ['30 February', contact({ last_contacted_at: '2026-02-30' })],
    ['NUL in a text', contact({ last_name: 'a\0b' })],
    ['a lone surrogate in a text', contact({ last_name: 'a\ud800' })],
    ['NUL in an address', contact({ address: { city: '\0' } })],
    ['a lone surrogate in a list of a custom field', contact({ custom_fields: { a: ['\udc00'] } })],
    ['NUL in the name of a custom field', contact({ custom_fields: { 'a\0': 1 } })],
    ['the name of a list parameter as a custom field', contact({ custom_fields: { sort: 1 } })],
    [
      'more than 64 KiB of custom fields',
      contact({ custom_fields: { a: Array(8).fill('x'.repeat(9_000)) } }),
    ],
    ['an unknown time zone', contact({ timezone: 'Europe/Atlantis' })],
    ['an offset as a time zone', contact({ timezone: '+01:00' })],
    ['an unknown currency', company({ currency: 'ZZZ' })],
    ['an email address as a domain', company({ domain: 'ann@acme.example' })],
    ['an IP address as a domain', company({ domain: '10.0.0.1' })],
    ['a script as a web address', contact({ website: 'javascript:alert(1)' })],
    ['an exponent as money', company({ annual_revenue: '1e3' })],
    ['money beyond 16 digits', company({ annual_revenue: '12345678901234567' })],
    ['half an employee', company({ employee_count: 0.5 })],
    ['an unknown field', contact({ middle_name: 'X' })],
    ['a field that the service sets', contact({ version: 2 })],
    [
      'a contact without a name, email or phone',
      createSchema('contacts').safeParse({ job_title: 'Admiral' }),
    ],
    ['a company without a name', createSchema('companies').safeParse({ name: ' ' })],
    ['a date that does not exist', deal({ expected_close_date: '2026-02-29' })],
    ['a date in the year 0', deal({ expected_close_date: '0000-01-01' })],
    ['a time as a date', deal({ expected_close_date: '2026-02-28T00:00:00Z' })],
    ['more than 100 percent', deal({ probability: 101 })],
    ['an unknown type of a deal', deal({ deal_type: 'maybe' })],
    ['the closing time in a change of a deal', updateSchema('deals').safeParse({ closed_at: '2020-01-01' })],
    ['a time of creation in the future', deal({ created_at: '2999-01-01T00:00:00Z' })],
    ['the completion time of a task', updateSchema('tasks').safeParse({ completed_at: null })],
    ['a note without a body', createSchema('notes').safeParse({ title: 'X' })],
    ['a note of 65,537 characters', createSchema('notes').safeParse({ body: 'x'.repeat(65_537) })],
    ['an activity without a type', createSchema('activities').safeParse({ subject: 'X' })],
    ['a patch that clears a required field', updateSchema('companies').safeParse({ name: null })],
    ['a list', createSchema('contacts').safeParse([])],
  ]
  for (const [what, { success }] of refused) it(`refuse ${what}`, () => assert.equal(success, false))

  it('say that a field is set by the service', () => {
    const { error } = change({ version: 2 })
    assert.match(error!.issues[0]!.message, /set by the service/)
  })

  it('report all issues at once', () => {
    const { error } = contact({ email: 'x', version: 2, middle_name: 'X', last_name: '\0' })
    assert.equal(error!.issues.length, 4)
  })

  it('survive very deep nesting', () => {
    const deep = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000))
    for (const field of ['custom_fields', 'address', 'tags', 'middle_name']) {
      assert.equal(contact({ [field]: deep }).success, false)
      assert.equal(contact({ [field]: { a: deep } }).success, false)
    }
  })

  it('accept a note of 65,536 characters', () => {
    assert.ok(createSchema('notes').safeParse({ body: 'x'.repeat(65_536) }).success)
  })

  it('take the default for null in a patch', () => {
    assert.deepEqual(change({ do_not_contact: null }).data, { do_not_contact: false })
  })
})

describe('input that record schemas accept', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('always gives fields or issues', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kindNames), fc.jsonValue(), (kind, body) => {
        createSchema(kind).safeParse(body)
        updateSchema(kind).safeParse(body)
      }),
    )
  })

  for (const kind of kindNames)
    it(`PostgreSQL stores and returns unchanged: ${kind}`, async () => {
      const organizationId = await createOrganization(db)
      const { tenant, create } = recordsOf(db, organizationId)
      const body = bodyOf(kind, await createMember(db, organizationId))
      let stored = 0
      const attempt = async (body: RecordInput, patch: RecordInput) => {
        // With a record of its own it has the key of no other.
        const owners = await ownersOf(kind, create)
        const created = createSchema(kind).safeParse({ ...body, ...owners })
        const changed = updateSchema(kind).safeParse({ ...patch, ...owners })
        if (!created.success) return
        const isStored = await tenant(async (tx) => {
          // Rules on several fields are not those of the schema.
          let record = await createRecord(tx, kind, created.data).catch((error) => {
            assert.equal(error.type, 'validation_error')
            return undefined
          })
          if (!record) return false
          const { id } = record
          if (changed.success)
            record = await updateRecord(tx, kind, id, changed.data).catch((error) => {
              assert.equal(error.type, 'validation_error')
              return record
            })
          assert.deepEqual(await getRecord(tx, kind, id), record)
          return true
        })
        if (isStored) stored += 1
      }
      await fc.assert(fc.asyncProperty(body, body, attempt), { numRuns: 100 })
      assert.ok(stored > 10, `only ${stored} of 100 were valid: the test says little`)
    })
})

const text = fc.oneof(
  { weight: 8, arbitrary: fc.string({ unit: 'grapheme' }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', ' ', "'; drop table contacts; --", '\\', '%', 'a\0', '\ud800', '\udc00x'),
  },
)
const number = fc.oneof(fc.integer(), fc.double(), fc.nat(10_000))
const scalar = fc.oneof(text, number, fc.boolean(), fc.constant(null))

const valuesOf: Record<Exclude<FieldType, 'id' | 'enum' | 'user'>, fc.Arbitrary<unknown>> = {
  text,
  email: fc.emailAddress(),
  phone: fc.oneof(text, fc.constantFrom('+41446681800', '044 668 18 00')),
  emails: fc.oneof(fc.array(fc.emailAddress(), { maxLength: 3 }), text),
  phones: fc.oneof(fc.array(text, { maxLength: 3 }), fc.constant('+41446681800; 044 668 18 00')),
  url: fc.oneof(fc.webUrl(), fc.domain()),
  domain: fc.oneof(fc.domain(), fc.webUrl()),
  integer: fc.oneof(fc.nat(2_147_483_647), number),
  money: fc.oneof(
    number,
    fc
      .tuple(fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n }), fc.nat(999_999))
      .map((parts) => parts.join('.')),
  ),
  decimal: fc.oneof(number, fc.constantFrom('1.50', ' 007', '0', '-1', '100', '1e3', '12345678.12345678')),
  currency: fc.constantFrom('USD', 'chf', 'EUR', 'xx'),
  timezone: fc.constantFrom('Europe/Zurich', 'UTC', 'Etc/GMT+5', 'Mars/Olympus'),
  boolean: fc.boolean(),
  date: fc.constantFrom('0000-01-01', '0001-01-01', '2024-02-29', '2026-02-29', '2026-1-1', '9999-12-31'),
  datetime: fc.oneof(
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc
      .tuple(
        fc.constantFrom('0000', '0001', '1582', '2026', '9999'),
        fc.constantFrom('-01-01T00:00:00', '-12-31T23:59:59.9999', '-06-15T12:00:00'),
        fc.constantFrom('Z', '+14:00', '-14:00', '+23:59', '-23:59'),
      )
      .map((parts) => parts.join('')),
  ),
  reference: fc.constantFrom(null, ''),
  address: fc.record({ line1: text, city: text, country: text }, { requiredKeys: [] }),
}

const mostly = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof(
    { weight: 30, arbitrary },
    { weight: 1, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: scalar },
  )

/** Bodies with mostly valid types, including the edge cases of each type. */
function bodyOf(kind: KindName, userId: string): fc.Arbitrary<RecordInput> {
  const { fields, example, atLeastOneOf = [] } = kinds[kind]
  const user = fc.constantFrom(null, '', userId, userId.toUpperCase())
  const ofField = ({ type, values = [], ofOrganization }: Field) => {
    if (type === 'user') return user
    if (type === 'id') throw new Error('is of no kind')
    if (type !== 'enum') return valuesOf[type]
    // What the organization defines is checked with the database.
    return fc.constantFrom(...(ofOrganization ? [] : ['other']), ...values)
  }
  const writable = Object.entries(fields)
    .filter(([, field]) => !field.readOnly)
    .map(([name, field]) => [name, mostly(ofField(field))])
  const needed = Object.entries(example).filter(
    ([name]) => fields[name]?.required || fields[name]?.filled || atLeastOneOf.includes(name),
  )
  const common = {
    owner_id: mostly(user),
    tags: mostly(fc.array(text, { maxLength: 3 })),
    custom_fields: mostly(
      fc.dictionary(
        fc.constantFrom('tier', 'score', 'list', '__proto__', 'constructor'),
        fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })),
        { maxKeys: 3 },
      ),
    ),
  }
  const some = fc
    .record({ ...Object.fromEntries(writable), ...common })
    .chain((body) =>
      fc.subarray(Object.entries(body), { maxLength: 5 }).map((kept) => Object.fromEntries(kept)),
    )
  return some.map((body) => ({ ...Object.fromEntries(needed), ...body }))
}
