import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fieldTypes, type Operator } from '../../../db/model/records/field-types.ts'
import { operatorsOf } from '../../../db/model/records/filters.ts'
import type { FieldType, KindName } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import type { AgxRecord } from '../../../db/model/records/schemas.ts'
import { setRates } from '../../../db/records/exchange-rates.ts'
import type { ListQuery } from '../../../db/records/list.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { ownersOf } from '../../support/example-of.ts'
import { beside, compare } from '../../support/filter-oracle.ts'
import { filtersOf, recordsOf, type TestRecords } from '../../support/records.ts'

/** Few values of each type, so that records share them; no record has the last. ASCII only, as in list.test.ts. */
const VALUES: Partial<Record<FieldType, unknown[]>> = {
  text: ['ape', 'Bee', 'bee, "CAT"', 'Ab%_c', 'dog'],
  email: ['ann@bee.io', 'Bob@ape.io', 'nobody@ape.io'],
  phone: ['+41446681800', '+14155552671', '+4930901820'],
  url: ['https://ape.io/a', 'https://bee.io', 'https://dog.io'],
  domain: ['ape.io', 'bee.io', 'dog.io'],
  integer: [0, 2, 10, 5],
  money: ['0.00', '9.50', '10.00', '10.50'],
  decimal: ['0', '2.5', '10', '10.5'],
  currency: ['USD', 'EUR', 'CHF'],
  timezone: ['Europe/Zurich', 'Asia/Tokyo', 'UTC'],
  boolean: [true, false],
  date: ['2026-01-31', '2026-02-01', '2027-01-01'],
  datetime: [
    '2026-01-31T09:00:00.000Z',
    '2026-01-31T23:59:59.999Z',
    '2026-02-01T00:00:00.000Z',
    '2027-01-01T00:00:00.000Z',
  ],
}
/** Further filter values for times. */
const DAYS = ['2026-01-30', '2026-01-31', '2026-02-01']

/** In US dollars: 10 euros are as much as 9.50 dollars. */
const OF_EURO = 0.95

const SIZE = 14
/** Samples of records for each that is made. */
const TRIED = 10
const RUNS = 150

describe('lists, compared with a model', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  for (const kind of kindNames)
    it(`find ${kind} by every operator of every field, in every order, page by page`, async () => {
      const records = recordsOf(db, await createOrganization(db))
      const all: AgxRecord[] = []
      for (const fields of fc.sample(fieldsOf(kind), { numRuns: SIZE * TRIED, seed: 4 })) {
        if (all.length === SIZE) break
        // A rule on several fields may refuse a sample.
        const owners = await ownersOf(kind, records.create)
        const record = await records.create(kind, { ...fields, ...owners }).catch((error) => {
          assert.equal(error.type, 'validation_error')
          return undefined
        })
        if (record) all.push(record)
      }
      assert.equal(all.length, SIZE)
      await records.tenant((tx) => setRates(tx, { EUR: String(OF_EURO) }))
      await fc.assert(
        fc.asyncProperty(queryOf(kind), async ({ filters, q, ...query }) => {
          const read = readerOf(kind, filters, query.match, CENTS)
          const readExactly = readerOf(kind, filters, query.match, EXACTLY)
          const expected = all
            .filter((record) => meets(record, filters, query.match, read))
            .filter((record) => !q || containsWords(kind, record, q))
            .sort(bySeveral(query.sort, query.order, readExactly))
            .map(({ id }) => id)
          const parsed = filters.flatMap(([name, operator, values]) =>
            filtersOf(kind, { [`${name}[${operator}]`]: written(operator, values) }),
          )
          const found = await walk(records, kind, { ...query, q, filters: parsed })
          assert.deepEqual(found, { ids: expected, total: expected.length })
        }),
        { numRuns: RUNS },
      )
    })
})

type Given = [field: string, operator: Operator, values: string[]]

const filterable = (kind: KindName) =>
  Object.entries(kinds[kind].fields).filter(([, { type }]) => type in VALUES || type === 'enum')

const valuesOf = (kind: KindName, name: string): unknown[] => {
  const { type, values, max = 100 } = kinds[kind].fields[name]!
  return values ? [...values] : VALUES[type]!.filter((value) => typeof value !== 'number' || value <= max)
}

const givenTo = (kind: KindName, name: string): string[] => [
  ...valuesOf(kind, name).map(String),
  ...(kinds[kind].fields[name]!.type === 'datetime' ? DAYS : []),
]

function fieldsOf(kind: KindName) {
  const { fields, atLeastOneOf = [] } = kinds[kind]
  const arbitraries = filterable(kind).flatMap(([name, field]) => {
    if (field.readOnly) return []
    const values = valuesOf(kind, name)
    const some = fc.constantFrom(...(values.length > 2 ? values.slice(0, -1) : values))
    const needed = field.required || 'default' in fields[name]! || field.filled || name === atLeastOneOf[0]
    return [[name, needed ? some : fc.option(some, { freq: 2, nil: null })]]
  })
  return fc.record(Object.fromEntries(arbitraries) as Record<string, fc.Arbitrary<unknown>>)
}

function queryOf(kind: KindName) {
  const filter = fc.constantFrom(...filterable(kind).map(([name]) => name)).chain((name) =>
    fc.constantFrom(...operatorsOf(kinds[kind], name)).chain((operator) => {
      const value = fc.constantFrom(...givenTo(kind, name))
      const values =
        operator === 'is_null'
          ? fc.constantFrom(['true'], ['false'])
          : operator === 'between'
            ? fc.tuple(value, value)
            : operator === 'in' || operator === 'nin'
              ? fc.array(value, { minLength: 1, maxLength: 3 })
              : operator === 'contains'
                ? value.map((text) => [text.slice(1, 4)])
                : operator === 'starts_with'
                  ? value.map((text) => [text.slice(0, 2)])
                  : value.map((one) => [one])
      return fc.tuple(fc.constant(name), fc.constant(operator), values)
    }),
  ) as fc.Arbitrary<Given>
  const sorts = filterable(kind).flatMap(([name, { type }]) => (fieldTypes[type].sortable ? [name] : []))
  return fc.record({
    filters: fc.array(filter, { maxLength: 3 }),
    q: fc.constantFrom(undefined, undefined, 'ape', 'BEE', 'be', 'ee cat', 'c', 'b%_', 'zebra'),
    sort: fc
      .uniqueArray(fc.constantFrom('created_at', 'updated_at', 'id', ...sorts), {
        minLength: 1,
        maxLength: 3,
      })
      .chain((names) =>
        fc.tuple(
          ...names.map((name) => (names.length > 1 ? fc.constantFrom(name, `-${name}`) : fc.constant(name))),
        ),
      )
      .map((names) => names.join(',')),
    order: fc.constantFrom('asc' as const, 'desc' as const),
    match: fc.constantFrom('all' as const, 'any' as const),
    count: fc.constantFrom('exact' as const, 'estimated' as const),
    limit: fc.integer({ min: 1, max: 6 }),
  })
}

/** All ids from the first page to the last, and the total, which is the same on every page. */
async function walk(records: TestRecords, kind: KindName, query: Partial<ListQuery>) {
  const ids: string[] = []
  const totals = new Set<number | null>()
  let cursor: string | undefined
  do {
    const page = await records.list(kind, { ...query, cursor })
    ids.push(...page.data.map(({ id }) => id))
    totals.add(page.total)
    cursor = page.next_cursor ?? undefined
  } while (cursor)
  assert.equal(totals.size, 1)
  return { ids, total: [...totals][0] }
}

const LISTS: Operator[] = ['in', 'nin', 'between']

const written = (operator: Operator, values: string[]): string =>
  LISTS.includes(operator)
    ? values.map((value) => (/[,"]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)).join(',')
    : values[0]!

type Comparable = string | number | boolean | null

/** Lower-case text, numbers as numbers, times as text. */
function comparable(value: unknown): Comparable {
  if (value === null || value === undefined) return null
  if (typeof value !== 'string') return value as Comparable
  return /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value.toLowerCase()
}

type Read = (record: AgxRecord, name: string) => Comparable

/** Filters compare cents. */
const CENTS = 100
/** More than the products have, to undo the errors of floating-point numbers. */
const EXACTLY = 1e6

/** The value by which a record compares: of an amount in euros, unless one currency is named, its worth in dollars. */
function readerOf(kind: KindName, filters: Given[], match: 'all' | 'any', units: number): Read {
  const namesOne = ([name, operator, values]: Given) =>
    name === 'currency' && (operator === 'eq' || operator === 'in') && values.length === 1
  const isNamed = match === 'all' && filters.some(namesOne)
  return (record, name) => {
    const value = comparable(record[name])
    const isMoney = kinds[kind].fields[name]?.type === 'money'
    if (!isMoney || record.currency !== 'EUR' || isNamed || typeof value !== 'number') return value
    return Math.round(value * OF_EURO * units + 1e-6) / units
  }
}

function meets(record: AgxRecord, filters: Given[], match: 'all' | 'any', read: Read): boolean {
  const one = ([name, operator, values]: Given): boolean => {
    const value = read(record, name)
    if (operator === 'is_null') return (value === null) === (values[0] === 'true')
    const wanted = values.map((text) => (typeof value === 'boolean' ? text === 'true' : comparable(text)))
    const [first, second] = wanted as [NonNullable<Comparable>, NonNullable<Comparable>]
    const isOneOf = wanted.some((other) => beside(value, other) === other)
    if (operator === 'ne' || operator === 'nin') return !isOneOf
    if (operator === 'not_since') return value === null || compare(beside(value, first), first) < 0
    if (value === null) return false
    const [from, to] = [beside(value, first), beside(value, second)]
    const tests: Partial<Record<Operator, boolean>> = {
      eq: isOneOf,
      in: isOneOf,
      gt: compare(from, first) > 0,
      gte: compare(from, first) >= 0,
      lt: compare(from, first) < 0,
      lte: compare(from, first) <= 0,
      between: compare(from, first) >= 0 && compare(to, second) <= 0,
      contains: String(value).includes(String(values[0]).toLowerCase()),
      starts_with: String(value).startsWith(String(values[0]).toLowerCase()),
    }
    return tests[operator]!
  }
  return filters.length === 0 || (match === 'all' ? filters.every(one) : filters.some(one))
}

/** Whether the record contains every word; a word of one or two letters at the start of a word. */
function containsWords(kind: KindName, record: AgxRecord, q: string): boolean {
  const texts = Object.entries(kinds[kind].fields)
    .filter(([name, { type }]) => fieldTypes[type].searched && record[name] !== null)
    .map(([name]) => String(record[name]).toLowerCase())
  return q
    .toLowerCase()
    .split(' ')
    .every((word) =>
      texts.some((text) =>
        word.length > 2 ? text.includes(word) : new RegExp(`(^|[^a-z0-9])${word}`).test(text),
      ),
    )
}

/** By each field in its direction; ties by id, in that of the last field. */
function bySeveral(sort: string, order: 'asc' | 'desc', read: Read) {
  const each = sort.split(',').map((written) => {
    const isDescending = written.startsWith('-')
    return by(isDescending ? written.slice(1) : written, isDescending ? 'desc' : order, read)
  })
  return (one: AgxRecord, two: AgxRecord): number => {
    for (const compared of each) {
      const found = compared(one, two)
      if (found !== 0) return found
    }
    const last = sort.split(',').at(-1)!
    const isDescending = last.startsWith('-') || order === 'desc'
    return one.id < two.id === isDescending ? 1 : -1
  }
}

/** Nulls last in both directions. */
function by(sort: string, order: 'asc' | 'desc', read: Read) {
  const sign = order === 'asc' ? 1 : -1
  return (one: AgxRecord, two: AgxRecord): number => {
    const [a, b] = [read(one, sort), read(two, sort)]
    if (a === b) return 0
    if (a === null || b === null) return a === null ? 1 : -1
    return compare(a, b) * sign
  }
}
