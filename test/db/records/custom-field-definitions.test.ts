import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { AppError } from '../../../db/model/errors.ts'
import type { DefinitionInput, DefinitionPatch } from '../../../db/model/records/custom-fields/definition.ts'
import {
  CUSTOM_FIELD_TYPES,
  type CustomFieldType,
  readValue,
} from '../../../db/model/records/custom-fields/types.ts'
import { createSchema, type RecordInput } from '../../../db/model/records/schemas.ts'
import { createMany, createRecord } from '../../../db/records/create.ts'
import {
  createDefinition,
  deleteDefinition,
  updateDefinition,
} from '../../../db/records/custom-fields/definitions.ts'
import { updateMany } from '../../../db/records/update.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

const OPTIONS = ['gold', 'Silver', 'bronze']

describe('custom-field definitions', () => {
  let db: TestDatabase
  let records: TestRecords

  before(async () => {
    db = await createTestDatabase()
  })
  beforeEach(async () => {
    records = recordsOf(db, await createOrganization(db))
  })
  after(() => db.drop())

  const define = (name: string, input: DefinitionInput) =>
    records.tenant((tx) => createDefinition(tx, 'contacts', name, input))
  const change = (name: string, patch: DefinitionPatch) =>
    records.tenant((tx) => updateDefinition(tx, 'contacts', name, patch))
  const remove = (name: string, deleteValues = false) =>
    records.tenant((tx) => deleteDefinition(tx, 'contacts', name, { deleteValues }))
  const contact = (custom_fields: RecordInput, more: RecordInput = {}) =>
    records.create('contacts', { first_name: 'Ada', custom_fields, ...more })
  const fieldsOf = async (id: string) => (await records.get('contacts', id)).custom_fields

  describe('check written values', () => {
    const read: [type: CustomFieldType, given: unknown, kept: unknown][] = [
      ['text', ' a ', 'a'],
      ['text', 8001, '8001'],
      ['number', 1.5, 1.5],
      ['number', ' -2.50 ', -2.5],
      ['number', -0, 0],
      ['number', 0.1 + 0.2, 0.30000000000000004],
      ['number', '0.1234567890123456789', 0.12345678901234568],
      ['text', '0.1234567890123456789', '0.1234567890123456789'],
      ['boolean', true, true],
      ['boolean', 'No', false],
      ['date', '2024-02-29', '2024-02-29'],
      ['datetime', '2026-01-31T10:00:00+01:00', '2026-01-31T09:00:00.000Z'],
      ['datetime', '2026-01-31', '2026-01-31T00:00:00.000Z'],
      ['select', ' GOLD', 'gold'],
      ['multi_select', ['gold', 'silver', 'GOLD'], ['gold', 'Silver']],
      ['multi_select', 'gold; bronze', ['gold', 'bronze']],
      ['url', 'acme.example/x', 'https://acme.example/x'],
      ['email', ' Ada@Example.com ', 'Ada@Example.com'],
      ['phone', '+41 44 668 18 00', '+41446681800'],
      ['json', { a: [1, { b: null }] }, { a: [1, { b: null }] }],
      ['json', [], []],
    ]
    for (const [type, given, kept] of read)
      it(`keep ${JSON.stringify(given)} in a ${type} as ${JSON.stringify(kept)}`, () =>
        assert.deepEqual(readValue({ type, options: OPTIONS }, given), { value: kept }))

    const refused: [type: CustomFieldType, ...given: unknown[]][] = [
      ['text', ['a'], { a: 1 }],
      ['number', 'x', '1e5', true, [1], Number.POSITIVE_INFINITY, Number.NaN, 1e16, '12345678901234567890'],
      ['boolean', 'maybe', 1, []],
      ['date', '2026-02-30', '2025-02-29', '0000-01-01', '31.1.2026', '2026-01-31T00:00:00Z', 20260131],
      ['datetime', '2026-02-30T00:00:00Z', '2026-01-31T25:00:00Z', '2026-01-31 10:00', 5],
      ['select', 'tin', ['gold'], 1],
      ['multi_select', ['gold', 'tin'], 'gold;tin', [['gold']], 1],
      ['url', 'x', 'javascript:alert(1)', 5],
      ['email', 'ada', 'a@b', 5],
      ['phone', 5, 'x'.repeat(65)],
      ['json', JSON.parse('['.repeat(11) + ']'.repeat(11))],
    ]
    for (const [type, ...values] of refused)
      for (const value of values)
        it(`refuse ${String(JSON.stringify(value)).slice(0, 30)} in a ${type}`, () =>
          assert.ok('msg' in readValue({ type, options: OPTIONS }, value)))

    it('read values idempotently', () => {
      for (const type of CUSTOM_FIELD_TYPES)
        fc.assert(
          fc.property(writtenFor(type), (given) => {
            const reading = readValue({ type, options: OPTIONS }, given)
            if ('value' in reading)
              assert.deepEqual(readValue({ type, options: OPTIONS }, reading.value), reading)
          }),
        )
    })

    it('on create and update, and report all issues at once', async () => {
      await define('score', { type: 'number' })
      await define('since', { type: 'date' })
      const wrong = { score: 'many', since: '2026-02-30', other: { a: 1 } }
      const expected = ['score', 'since', 'other'].map((name) => ['body', 'custom_fields', name])
      assert.deepEqual(await issuesOf(contact(wrong)), expected)
      const { id, version } = await contact({ score: '7', since: '2026-01-31', other: 'x' })
      assert.deepEqual(await issuesOf(records.update('contacts', id, { custom_fields: wrong })), expected)
      const after = await records.get('contacts', id)
      assert.deepEqual(
        [after.version, after.custom_fields],
        [version, { score: 7, since: '2026-01-31', other: 'x' }],
      )
    })

    it('do not affect other kinds and organizations', async () => {
      await define('score', { type: 'number', unique: true })
      await contact({ score: 5 })
      const others = recordsOf(db, await createOrganization(db))
      await others.tenant((tx) => createDefinition(tx, 'contacts', 'score', { type: 'text', unique: true }))
      for (const score of ['5', 'many']) {
        await records.create('companies', { name: 'Acme', custom_fields: { score } })
        await others.create('contacts', { first_name: 'Ada', custom_fields: { score } })
      }
    })

    it('accept objects only for the type json', async () => {
      assert.equal((await issuesOf(contact({ a: { b: 1 } }))).length, 1)
      assert.equal((await issuesOf(contact({ a: [[1]] }))).length, 1)
      await define('a', { type: 'json' })
      const { id } = await contact({ a: { b: [1, { c: null }] } })
      assert.deepEqual(await fieldsOf(id), { a: { b: [1, { c: null }] } })
      const { data } = await records.list('contacts', { q: 'ada' })
      assert.equal(data.length, 1)
    })

    it('accept unchanged stored values that a definition would now refuse', async () => {
      await define('tier', { type: 'select', options: OPTIONS })
      const { id } = await contact({ tier: 'Gold', other: 'x' })
      await records.delete('contacts', id)
      await records.tenant((tx) => updateDefinition(tx, 'contacts', 'tier', { options: ['Silver'] }))
      await records.tenant((tx) =>
        tx
          .trx('organizations')
          .where({ id: tx.organizationId })
          .update({ settings: { strict_custom_fields: true } }),
      )
      await records.restore('contacts', id)
      const stored = { tier: 'gold', other: 'x' }
      const patch = { job_title: 'Countess', custom_fields: stored }
      assert.deepEqual((await records.update('contacts', id, patch)).custom_fields, stored)
      const [one] = await records.tenant((tx) =>
        updateMany(tx, 'contacts', [{ id, patch: { ...patch, job_title: 'Analyst' } }]),
      )
      assert.ok(one && 'record' in one)
      const wrong = records.update('contacts', id, { custom_fields: { tier: 'GOLD', other: 'y' } })
      assert.equal((await issuesOf(wrong)).length, 2)
      assert.deepEqual(await fieldsOf(id), stored)
      await records.update('contacts', id, { custom_fields: { tier: 'silver', other: null } })
      assert.deepEqual(await fieldsOf(id), { tier: 'Silver' })
    })

    it('accept only defined fields in a strict organization', async () => {
      records = recordsOf(db, await createOrganization(db, { settings: { strict_custom_fields: true } }))
      await define('tier', { type: 'text' })
      const error = await errorOf(contact({ tier: 'gold', teir: 'gold' }))
      assert.equal(error.details.issues?.[0]?.hint, 'defined fields: tier')
      await contact({ tier: 'gold', none: null })
    })
  })

  describe('that are required', () => {
    it('are required on create, and cannot be cleared', async () => {
      const { id: old } = await contact({})
      await define('tier', { type: 'text', required: true })
      for (const given of [{}, { tier: null }, { tier: ' ' }])
        assert.deepEqual(await issuesOf(contact(given)), [['body', 'custom_fields', 'tier']])
      const { id } = await contact({ tier: 'gold' })
      for (const cleared of [{ custom_fields: { tier: null } }, { custom_fields: null }])
        assert.equal((await issuesOf(records.update('contacts', id, cleared))).length, 1)
      await records.update('contacts', id, { custom_fields: { other: 1 } })
      assert.deepEqual(await fieldsOf(id), { tier: 'gold', other: 1 })
      // An older record can be updated, except that its required field cannot be cleared.
      await records.update('contacts', old, { custom_fields: { other: 1 }, job_title: 'Countess' })
      assert.equal(
        (await issuesOf(records.update('contacts', old, { custom_fields: { tier: '' } }))).length,
        1,
      )
    })

    it('get their default', async () => {
      await define('tier', { type: 'select', options: OPTIONS, required: true, default: 'SILVER' })
      await define('tags', { type: 'multi_select', options: OPTIONS, default: ['gold'] })
      const { id } = await contact({})
      assert.deepEqual(await fieldsOf(id), { tier: 'Silver', tags: ['gold'] })
      assert.deepEqual((await contact({ tier: null, tags: [] })).custom_fields, {
        tier: 'Silver',
        tags: ['gold'],
      })
      await records.update('contacts', id, { custom_fields: { tags: [] } })
      assert.deepEqual(await fieldsOf(id), { tier: 'Silver' })
    })
  })

  describe('that are unique', () => {
    const taken = (promise: Promise<unknown>) =>
      errorOf(promise).then(({ type, details }) => [type, details.param])
    const CONFLICT = ['conflict', 'custom_fields.code']

    it('let one record have a value, case-insensitively', async () => {
      await define('code', { type: 'text', unique: true })
      const { id } = await contact({ code: 'A1' })
      assert.deepEqual(await taken(contact({ code: 'a1 ' })), CONFLICT)
      const { id: other } = await contact({ code: 'A2' })
      assert.deepEqual(
        await taken(records.update('contacts', other, { custom_fields: { code: 'a1' } })),
        CONFLICT,
      )
      await records.update('contacts', id, { custom_fields: { code: 'a1' } })
      await records.update('contacts', id, { custom_fields: { code: 'B1' } })
      await records.update('contacts', other, { custom_fields: { code: 'A1' } })
      await contact({})
      await contact({})
    })

    it('are unique among records that are written together', async () => {
      await define('code', { type: 'text', unique: true })
      await define('score', { type: 'number', required: true })
      await contact({ code: 'A1', score: 1 })
      const many = [
        { code: 'b1', score: '1' },
        { code: 'a1', score: 1 },
        { code: 'B1', score: 2 },
        { code: 'b2' },
        { code: 'b3', score: 3 },
      ]
      const inputs = many.map((custom_fields) =>
        createSchema('contacts').parse({ first_name: 'Ada', custom_fields }),
      )
      const outcomes = await records.tenant((tx) => createMany(tx, 'contacts', inputs))
      assert.deepEqual(
        outcomes.map((one) => ('error' in one ? one.error.type : one.record.custom_fields)),
        [{ code: 'b1', score: 1 }, 'conflict', 'conflict', 'validation_error', { code: 'b3', score: 3 }],
      )
      const [one, , , , two] = outcomes as { record: { id: string } }[]
      const swap: { id: string; patch: RecordInput }[] = [
        { id: one!.record.id, patch: { custom_fields: { code: 'b3' } } },
        { id: two!.record.id, patch: { custom_fields: { code: 'b1', score: 'x' } } },
      ]
      const types = async () =>
        (await records.tenant((tx) => updateMany(tx, 'contacts', swap))).map((one) =>
          'error' in one ? one.error.type : 'done',
        )
      assert.deepEqual(await types(), ['conflict', 'validation_error'])
      swap[1]!.patch.custom_fields = { code: 'b1' }
      assert.deepEqual(await types(), ['done', 'done'])
      assert.deepEqual(await taken(contact({ code: 'B1', score: 1 })), CONFLICT)
    })

    it('distinguish long values', async () => {
      await define('code', { type: 'text', unique: true })
      const long = 'é'.repeat(9_000)
      await contact({ code: long })
      await contact({ code: `${long}x` })
      assert.deepEqual(await taken(contact({ code: long.toUpperCase() })), CONFLICT)
    })

    it('accept a value from one of many concurrent requests', async () => {
      await define('code', { type: 'number', unique: true })
      for (const code of [1, 2, 3]) {
        const asked = Array.from({ length: 20 }, () => contact({ code }))
        const done = await Promise.allSettled(asked)
        assert.equal(done.filter(({ status }) => status === 'fulfilled').length, 1)
        for (const one of done)
          if (one.status === 'rejected') assert.equal((one.reason as AppError).type, 'conflict')
      }
      assert.equal((await records.list('contacts')).total, 3)
    })

    it('are freed by a delete, and claimed again by a restore', async () => {
      await define('code', { type: 'text', unique: true })
      const { id } = await contact({ code: 'A1' })
      await records.delete('contacts', id)
      const { id: second } = await contact({ code: 'A1' })
      assert.deepEqual(await taken(records.restore('contacts', id)), CONFLICT)
      await records.delete('contacts', second)
      await records.restore('contacts', id)
      assert.deepEqual(await taken(contact({ code: 'A1' })), CONFLICT)
    })

    it('cannot become unique if stored values are not', async () => {
      await define('code', { type: 'text' })
      const ids = [(await contact({ code: 'A1' })).id, (await contact({ code: 'a1' })).id]
      const error = await errorOf(change('code', { unique: true }))
      assert.deepEqual([error.type, error.details.param], ['conflict', 'unique'])
      assert.deepEqual(
        error.details.candidates,
        ids.map((id) => ({ object: 'contact', id })),
      )
      await records.update('contacts', ids[0]!, { custom_fields: { code: 'A2' } })
      await change('code', { unique: true })
      assert.deepEqual(await taken(contact({ code: 'a2' })), CONFLICT)
      await change('code', { unique: false })
      await contact({ code: 'a2' })
      assert.equal((await errorOf(change('code', { unique: true }))).type, 'conflict')
    })

    it('become unique only after concurrent writes have finished', async () => {
      await define('code', { type: 'text' })
      await contact({ code: 'A1' })
      const input = createSchema('contacts').parse({ first_name: 'Ada', custom_fields: { code: 'a1' } })
      let changed = Promise.resolve<unknown>(undefined)
      await records.tenant(async (tx) => {
        await createRecord(tx, 'contacts', input)
        changed = errorOf(change('code', { unique: true })).then(({ type }) => type)
        // A change that does not wait would end within this time.
        await setTimeout(100)
      })
      assert.equal(await changed, 'conflict')
    })
  })

  describe('that change', () => {
    it('rewrite values that need another form, as updates of the records', async () => {
      const { id } = await contact({ score: '12.50' })
      await contact({ other: 1 })
      await define('score', { type: 'number' })
      assert.deepEqual(await fieldsOf(id), { score: 12.5 })
      const history = await records.historyOf(id)
      assert.deepEqual(history.at(-1).changes, {
        custom_fields: { from: { score: '12.50' }, to: { score: 12.5 } },
      })
      assert.equal((await records.eventsOf(id)).at(-1).name, 'contact.updated')
      await change('score', { type: 'text' })
      assert.deepEqual(await fieldsOf(id), { score: '12.5' })
    })

    it('are refused if stored values do not match, and change nothing', async () => {
      await define('score', { type: 'text' })
      const { id } = await contact({ score: 'many' })
      await contact({ score: '5' })
      const error = await errorOf(change('score', { type: 'number' }))
      assert.deepEqual([error.type, error.details.param], ['conflict', 'type'])
      assert.match(error.message, new RegExp(`^1 contact .*${id}$`))
      const { data } = await records.list('contacts')
      assert.deepEqual(data.map(({ custom_fields }) => custom_fields).reverse(), [
        { score: 'many' },
        { score: '5' },
      ])
      assert.equal((await errorOf(define('first', { type: 'number' }))).type, 'none')
    })

    it('keep options in use', async () => {
      await define('tier', { type: 'select', options: OPTIONS })
      await contact({ tier: 'gold' })
      await change('tier', { options: ['Gold', 'tin'] })
      const { data } = await records.list('contacts')
      assert.deepEqual(data[0]!.custom_fields, { tier: 'Gold' })
      const error = await errorOf(change('tier', { options: ['tin'] }))
      assert.deepEqual([error.type, error.details.param], ['conflict', 'options'])
      await change('tier', { type: 'multi_select' })
      assert.deepEqual((await records.list('contacts')).data[0]!.custom_fields, { tier: ['Gold'] })
    })

    it('check many values', async () => {
      await records.tenant(async (tx) => {
        const { id } = await records.create('contacts', { first_name: 'A', custom_fields: { n: '1' } })
        await tx.trx.raw(
          `insert into contacts (organization_id, id, first_name, do_not_contact, tags, custom_fields, version,
             created_at, updated_at, created_by, updated_by, search_text)
           select organization_id, gen_random_uuid(), first_name, do_not_contact, tags,
             jsonb_build_object('n', case when n = 4500 then 'x' else n::text end), version,
             created_at, updated_at, created_by, updated_by, search_text
           from contacts, generate_series(1, 4500) n where id = ?`,
          [id],
        )
      })
      assert.match((await errorOf(define('n', { type: 'number' }))).message, /^1 contact /)
      assert.match((await errorOf(define('n', { type: 'text', unique: true }))).message, /same n/)
    })
  })

  it('are at most 200 of a kind', async () => {
    await records.tenant(async (tx) => {
      for (let i = 0; i < 200; i++) await createDefinition(tx, 'contacts', `f${i}`, { type: 'text' })
    })
    assert.equal((await errorOf(define('one_more', { type: 'text' }))).type, 'conflict')
    await remove('f0')
    await define('one_more', { type: 'text' })
  })

  describe('that are deleted', () => {
    it('keep the values', async () => {
      await define('code', { type: 'text', unique: true })
      await define('data', { type: 'json' })
      const { id } = await contact({ code: 'A1', data: { a: 1 } })
      await remove('code')
      await remove('data')
      assert.deepEqual(await fieldsOf(id), { code: 'A1', data: { a: 1 } })
      await contact({ code: 'A1' })
      await records.update('contacts', id, { custom_fields: { other: true } })
      assert.deepEqual(await fieldsOf(id), { code: 'A1', data: { a: 1 }, other: true })
    })

    it('delete the values on request, and the history keeps them', async () => {
      await define('code', { type: 'text', required: true })
      const { id } = await contact({ code: 'A1', other: 1 })
      assert.equal((await remove('code', true)).values_deleted, 1)
      assert.deepEqual(await fieldsOf(id), { other: 1 })
      const history = await records.historyOf(id)
      assert.equal(history.at(-1).changes.custom_fields.from.code, 'A1')
    })
  })
})

async function errorOf(promise: Promise<unknown>): Promise<Pick<AppError, 'type' | 'message' | 'details'>> {
  try {
    await promise
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  return { type: 'none' as AppError['type'], message: '', details: {} }
}

const issuesOf = async (promise: Promise<unknown>) =>
  (await errorOf(promise)).details.issues?.map(({ loc }) => loc) ?? []

function writtenFor(type: CustomFieldType): fc.Arbitrary<unknown> {
  const option = fc.constantFrom(...OPTIONS, 'GOLD', ' silver ', 'tin')
  const day = fc.constantFrom('2026-01-31', ' 0001-01-01', '9999-12-31', '2026-02-30')
  const typical: Record<CustomFieldType, fc.Arbitrary<unknown>> = {
    text: fc.oneof(fc.string({ unit: 'grapheme' }), fc.double(), fc.boolean()),
    number: fc.oneof(fc.double(), fc.integer(), fc.integer().map(String), fc.double().map(String)),
    boolean: fc.constantFrom(true, false, 'true', 'No', '1', 'off'),
    date: day,
    datetime: fc.oneof(
      day,
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      fc.constantFrom('2026-01-31T10:00:00.123456+01:00', '2026-01-31T10:00:00-12:00'),
    ),
    select: option,
    multi_select: fc.oneof(
      fc.array(option),
      fc.array(option).map((list) => list.join(';')),
    ),
    url: fc.oneof(
      fc.webUrl(),
      fc.domain(),
      fc.webUrl().map((url) => ` ${url} `),
    ),
    email: fc.oneof(
      fc.emailAddress(),
      fc.emailAddress().map((email) => ` ${email.toUpperCase()}`),
    ),
    phone: fc.oneof(
      fc.string(),
      fc.integer({ min: 10 ** 8, max: 10 ** 10 }).map((n) => `+41 ${n}`),
    ),
    json: fc.jsonValue(),
  }
  return fc.oneof({ weight: 5, arbitrary: typical[type] }, fc.anything({ maxDepth: 2 }))
}
