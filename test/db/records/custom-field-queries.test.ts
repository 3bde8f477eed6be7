import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AppError } from '../../../db/model/errors.ts'
import type { DefinitionInput } from '../../../db/model/records/custom-fields/definition.ts'
import { type CustomFieldType, customTypes } from '../../../db/model/records/custom-fields/types.ts'
import type { Operator } from '../../../db/model/records/field-types.ts'
import type { RecordInput } from '../../../db/model/records/schemas.ts'
import {
  createDefinition,
  deleteDefinition,
  updateDefinition,
} from '../../../db/records/custom-fields/definitions.ts'
import type { ListQuery } from '../../../db/records/list.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { comparable, compare, holds } from '../../support/filter-oracle.ts'
import { filtersOf, recordsOf, type TestRecords } from '../../support/records.ts'

type Tested = Exclude<CustomFieldType, 'json'>

/** Few values of each type, so that records share them; sorted neither by value nor by text. */
const VALUES: Record<Tested, unknown[]> = {
  text: ['b', 'B', 'a', 'ab'],
  number: [10, 9, -2.5, 0, 100],
  boolean: [true, false],
  date: ['2026-10-01', '2026-09-30', '0999-01-01'],
  datetime: ['2026-10-01T00:00:00.000Z', '2026-09-30T23:59:59.999Z', '2026-10-01T00:00:00.001Z'],
  select: ['gold', 'Silver'],
  multi_select: [['gold'], ['Silver', 'gold'], []],
  url: ['https://b.example/', 'https://a.example/x'],
  email: ['b@a.example', 'A@b.example'],
  phone: ['+41446681800', '+41446681801'],
}
const TYPES = Object.keys(VALUES) as Tested[]
const definitionOf = (type: Tested): DefinitionInput => ({
  type,
  ...(type.endsWith('select') ? { options: ['gold', 'Silver'] } : {}),
})

describe('lists by custom fields with definitions', () => {
  let db: TestDatabase
  let records: TestRecords
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  describe('of every type', () => {
    before(async () => {
      records = recordsOf(db, await createOrganization(db))
      for (const type of TYPES)
        await records.tenant((tx) => createDefinition(tx, 'companies', `a_${type}`, definitionOf(type)))
      for (let i = 0; i < 12; i++) {
        const fields = TYPES.map((type) => [`a_${type}`, VALUES[type][i % (VALUES[type].length + 1)] ?? null])
        await records.create('companies', { name: 'A', custom_fields: Object.fromEntries(fields) })
      }
    })

    it('filter like an array in memory', async () => {
      const { data: all } = await records.list('companies', { sort: 'id', order: 'asc' })
      await fc.assert(
        fc.asyncProperty(condition, async ({ type, operator, given }) => {
          const name = `custom_fields.a_${type}`
          const filters = filtersOf('companies', { [`${name}[${operator}]`]: given.map(written).join(',') })
          const { data, total } = await records.list('companies', { filters, sort: 'id', order: 'asc' })
          const expected = all.filter(({ custom_fields }) =>
            holds(comparable((custom_fields as RecordInput)[`a_${type}`]), operator, given.map(comparable)),
          )
          assert.deepEqual(
            data.map(({ id }) => id),
            expected.map(({ id }) => id),
          )
          assert.equal(total, expected.length)
        }),
        { numRuns: 300 },
      )
    })

    for (const order of ['asc', 'desc'] as const)
      it(`sort ${order} by type, missing values last, and page by cursor`, async () => {
        const { data: all } = await records.list('companies', { sort: 'id', order })
        for (const type of TYPES.filter((type) => customTypes[type].sortable)) {
          const valueAt = ({ custom_fields }: RecordInput) =>
            comparable((custom_fields as RecordInput)[`a_${type}`])
          const sign = order === 'asc' ? 1 : -1
          const expected = all.toSorted((one, two) => {
            const [a, b] = [valueAt(one), valueAt(two)]
            if (a === b) return 0
            if (a === null) return 1
            if (b === null) return -1
            return compare(a, b) * sign
          })
          const seen: string[] = []
          let cursor: string | undefined
          do {
            const page = await records.list('companies', {
              sort: `custom_fields.a_${type}`,
              order,
              limit: 5,
              cursor,
            })
            seen.push(...page.data.map(({ id }) => id))
            cursor = page.next_cursor ?? undefined
          } while (cursor)
          assert.deepEqual(
            seen,
            expected.map(({ id }) => id),
            type,
          )
        }
      })

    it('refuse unsupported values and operators, all at once, and name the supported ones', async () => {
      const refused = async (query: Partial<ListQuery>) => {
        try {
          await records.list('companies', query)
        } catch (error) {
          if (error instanceof AppError) return error
        }
        assert.fail('was not refused')
      }
      const wrong: [parameter: string, value: string, hint?: RegExp][] = [
        ['a_number', 'many', /number .*gt, gte/],
        ['a_number[contains]', '1', /operators eq, ne/],
        ['a_boolean[gt]', 'true', /eq, ne, is_null/],
        ['a_boolean', 'x'],
        ['a_date[gte]', '2026-02-30'],
        ['a_date[between]', '2026-01-01,soon'],
        ['a_datetime', 'now'],
        ['a_select[starts_with]', 'g'],
        ['a_select[in]', 'gold,tin', /values are gold, Silver/],
        ['a_multi_select[has]', 'tin', /values are/],
        ['a_multi_select', 'gold', /has, has_not, is_null/],
        ['a_text[has]', 'a'],
      ]
      for (const [parameter, value, hint = /operators/] of wrong) {
        const error = await refused({
          filters: filtersOf('companies', { [`custom_fields.${parameter}`]: value }),
        })
        assert.equal(error.type, 'validation_error', parameter)
        assert.match(error.details.issues![0]!.hint!, hint)
        assert.deepEqual(error.details.issues![0]!.loc, ['query', `custom_fields.${parameter}`])
      }
      const all = Object.fromEntries(wrong.map(([parameter, value]) => [`custom_fields.${parameter}`, value]))
      const error = await refused({
        filters: filtersOf('companies', all),
        sort: 'custom_fields.a_multi_select',
      })
      assert.equal(error.details.issues!.length, wrong.length + 1)
    })

    it('refuse cursors older than a change of the definition', async () => {
      const sort = 'custom_fields.a_number'
      const { next_cursor } = await records.list('companies', { sort, limit: 2 })
      await records.tenant((tx) => updateDefinition(tx, 'companies', 'a_number', { type: 'text' }))
      await assert.rejects(records.list('companies', { sort, limit: 2, cursor: next_cursor! }), {
        message: 'the cursor belongs to another query',
      })
      await records.tenant((tx) => updateDefinition(tx, 'companies', 'a_number', { type: 'number' }))
      await records.list('companies', { sort, limit: 2, cursor: next_cursor! })
    })
  })

  it('find a value by its written text', async () => {
    records = recordsOf(db, await createOrganization(db))
    const written = {
      phone: '+41 (0)44 668 18 00',
      url: 'Acme.example/about',
      email: ' Ann@acme.example ',
      text: ' two words ',
    } as const
    for (const type of Object.keys(written) as (keyof typeof written)[])
      await records.tenant((tx) => createDefinition(tx, 'companies', `a_${type}`, definitionOf(type)))
    const custom_fields = Object.fromEntries(
      Object.entries(written).map(([type, value]) => [`a_${type}`, value]),
    )
    const { id } = await records.create('companies', { name: 'A', custom_fields })
    for (const [name, value] of Object.entries(custom_fields))
      for (const operator of ['eq', 'in'])
        assert.deepEqual(
          (
            await records.list('companies', {
              filters: filtersOf('companies', { [`custom_fields.${name}[${operator}]`]: value }),
            })
          ).data.map((record) => record.id),
          [id],
          `${name} ${operator}`,
        )
  })

  it('ignore a value of another type in a restored record', async () => {
    records = recordsOf(db, await createOrganization(db))
    const define = (name: string, input: DefinitionInput) =>
      records.tenant((tx) => createDefinition(tx, 'companies', name, input))
    const custom_fields = { a: 'abc', b: 'abcd-ef-gh', c: 'x', d: 'maybe', e: 'x' }
    const { id } = await records.create('companies', { name: 'A', custom_fields })
    await records.delete('companies', id)
    await define('a', { type: 'number' })
    await define('b', { type: 'date' })
    await define('c', { type: 'datetime' })
    await define('d', { type: 'boolean' })
    await define('e', { type: 'multi_select', options: ['y'] })
    await records.restore('companies', id)
    for (const [field, value] of [
      ['a[gt]', '-1'],
      ['c[gte]', '0001-01-01'],
      ['d', 'true'],
      ['e[has]', 'Y'],
    ] as const) {
      const filters = filtersOf('companies', { [`custom_fields.${field}`]: value })
      assert.equal((await records.list('companies', { filters })).total, 0, field)
      const sort = `custom_fields.${field[0]}`
      if (field[0] !== 'e') assert.equal((await records.list('companies', { sort })).data.length, 1)
    }
    const filters = filtersOf('companies', { 'custom_fields.a': 'abc' })
    await records.tenant((tx) => deleteDefinition(tx, 'companies', 'a', { deleteValues: false }))
    assert.equal((await records.list('companies', { filters })).total, 1)
  })
})

interface Condition {
  type: Tested
  operator: Operator
  given: unknown[]
}

const condition: fc.Arbitrary<Condition> = fc
  .constantFrom(...TYPES)
  .chain((type) => fc.tuple(fc.constant(type), fc.constantFrom(...customTypes[type].operators)))
  .chain(([type, operator]) => {
    const days = type === 'datetime' ? ['2026-09-30', '2026-10-01', '2026-10-02'] : []
    const one = operator === 'is_null' ? fc.boolean() : fc.constantFrom(...VALUES[type].flat(), ...days)
    const count = operator === 'between' ? [2, 2] : operator === 'in' || operator === 'nin' ? [1, 3] : [1, 1]
    return fc
      .array(one, { minLength: count[0]!, maxLength: count[1]! })
      .map((given) => ({ type, operator, given }))
  })

const written = (value: unknown) => String(value)
