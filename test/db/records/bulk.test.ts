import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type KindName, referencesOf } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { createSchema, type RecordInput, upsertSchema } from '../../../db/model/records/schemas.ts'
import { createMany, createRecord } from '../../../db/records/create.ts'
import { createDefinition } from '../../../db/records/custom-fields/definitions.ts'
import type { Outcome } from '../../../db/records/sets.ts'
import { updateMany } from '../../../db/records/update.ts'
import { upsertMany } from '../../../db/records/upsert.ts'
import { recording, type Statement } from '../../bench/recording.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { exampleOf } from '../../support/example-of.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

describe('many records at once', () => {
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

  const createAll = (kind: KindName, inputs: RecordInput[]) =>
    records.tenant((tx) =>
      createMany(
        tx,
        kind,
        inputs.map((input) => createSchema(kind).parse(input)),
      ),
    )
  const upsertAll = (kind: KindName, by: string, inputs: RecordInput[]) =>
    records.tenant((tx) =>
      upsertMany(
        tx,
        kind,
        by,
        inputs.map((input) => ({
          input: createSchema(kind).parse(input),
          patch: upsertSchema(kind).parse(input),
        })),
      ),
    )

  /** The result of `work`, which starts during a transaction that takes an external_id. */
  async function whileTaken<T>(externalId: string, work: () => Promise<T>): Promise<T> {
    let commit = () => {}
    const held = new Promise<void>((resolve) => {
      commit = resolve
    })
    let take = () => {}
    const taken = new Promise<void>((resolve) => {
      take = resolve
    })
    const other = records.tenant(async (tx) => {
      const input = createSchema('contacts').parse({ last_name: 'Other', external_id: externalId })
      await createRecord(tx, 'contacts', input)
      take()
      await held
    })
    await taken
    const answer = work()
    await sleep(100)
    commit()
    await other
    return answer
  }

  /** Rows without the values that differ between records. */
  const stored = async (kind: KindName, id: string) => {
    const row = await db.system(kind).where({ organization_id: organizationId, id }).first()
    const { id: _, created_at, updated_at, closed_at, occurred_at, ...others } = row
    const { stage_changed_at, reminded_until, stated_at, ...same } = others
    for (const [name, { required }] of referencesOf(kinds[kind])) if (required) delete same[name]
    return same
  }

  for (const kind of kindNames)
    it(`stores ${kind} like single creates`, async () => {
      const full = async () => ({
        ...(await exampleOf(kind, records.create)),
        tags: ['a "b"', 'c,{d}'],
        custom_fields: { tier: 'gold', score: 1.5, list: ['x', null, true] },
      })
      const alone = await records.create(kind, await full())
      const outcomes = await createAll(kind, [await full(), await full()])
      for (const outcome of outcomes) {
        const record = recordIn(outcome)
        assert.deepEqual(await records.get(kind, record.id), record)
        assert.deepEqual(await stored(kind, record.id), await stored(kind, alone.id))
        const [entry] = await records.historyOf(record.id)
        assert.equal(entry.action, 'created')
        const [expected] = await records.historyOf(alone.id)
        assert.deepEqual(Object.keys(entry.changes), Object.keys(expected.changes))
        const events = await records.eventsOf(record.id)
        const alike = await records.eventsOf(alone.id)
        assert.deepEqual(
          events.map(({ name }) => name),
          alike.map(({ name }) => name),
        )
        assert.deepEqual(events[0].data, record)
      }
    })

  it('checks the references of each record, and creates their links', async () => {
    const company = await records.create('companies', { name: 'Engines' })
    const outcomes = await createAll('contacts', [
      { first_name: 'Ada', company_id: company.id },
      { first_name: 'Bob', company_id: crypto.randomUUID() },
      { first_name: 'Cyd', owner_id: crypto.randomUUID() },
      { first_name: 'Dan', company_id: company.id },
    ])
    assert.deepEqual(outcomes.map(typeOf), ['record', 'validation_error', 'validation_error', 'record'])
    assert.deepEqual(errorIn(outcomes[1]!).details.issues![0]!.loc, ['body', 'company_id'])
    assert.deepEqual(errorIn(outcomes[2]!).details.issues![0]!.loc, ['body', 'owner_id'])
    const links = await db.system('associations').where({ organization_id: organizationId })
    assert.deepEqual(
      links.map(({ b_id, a_id }) => [a_id, b_id]).sort(),
      [outcomes[0]!, outcomes[3]!].map((outcome) => [company.id, recordIn(outcome).id]).sort(),
    )
  })

  it('accepts only the first of several equal external_ids', async () => {
    await records.create('contacts', { first_name: 'Old', external_id: 'x1' })
    const outcomes = await createAll('contacts', [
      { first_name: 'A', external_id: 'x1' },
      { first_name: 'B', external_id: 'x2', company_id: crypto.randomUUID() },
      { first_name: 'C', external_id: 'x2' },
      { first_name: 'D', external_id: 'x2' },
    ])
    assert.deepEqual(outcomes.map(typeOf), ['conflict', 'validation_error', 'record', 'conflict'])
    assert.equal(errorIn(outcomes[3]!).details.param, 'external_id')
  })

  it('accepts only the first of several equal values of a unique custom field', async () => {
    await records.tenant((tx) => createDefinition(tx, 'contacts', 'badge', { type: 'text', unique: true }))
    const badge = (value: string) => ({ first_name: 'A', custom_fields: { badge: value } })
    await records.create('contacts', badge('one'))
    const outcomes = await createAll('contacts', [
      badge('ONE'),
      { ...badge('two'), company_id: crypto.randomUUID() },
      badge('two'),
      badge('Two'),
    ])
    assert.deepEqual(outcomes.map(typeOf), ['conflict', 'validation_error', 'record', 'conflict'])
    assert.equal(errorIn(outcomes[3]!).details.param, 'custom_fields.badge')
  })

  it('writes the others if a concurrent request takes an external_id', async () => {
    const answer = await whileTaken('x', () =>
      createAll('contacts', [{ first_name: 'A', external_id: 'x' }, { first_name: 'B' }]),
    )
    assert.deepEqual(answer.map(typeOf), ['conflict', 'record'])
    assert.equal((await records.list('contacts')).data.length, 2)
  })

  it('updates a record that a concurrent request creates', async () => {
    const answer = await whileTaken('x', () =>
      upsertAll('contacts', 'external_id', [
        { first_name: 'A', external_id: 'x' },
        { first_name: 'B', external_id: 'y' },
      ]),
    )
    assert.deepEqual(
      answer.map((outcome) => 'created' in outcome && outcome.created),
      [false, true],
    )
    const { first_name, last_name } = recordIn(answer[0]!)
    assert.deepEqual([first_name, last_name], ['A', 'Other'])
  })

  it("uses the organization's currency by default", async () => {
    const outcomes = await createAll('deals', [{ name: 'A', amount: '5' }, { name: 'B' }])
    assert.deepEqual(
      outcomes.map((outcome) => recordIn(outcome).currency),
      ['USD', null],
    )
  })

  it('creates the requested links', async () => {
    const company = await records.create('companies', { name: 'Engines' })
    const outcomes = await createAll('notes', [
      { body: 'plain' },
      { body: 'linked', associations: [{ object: 'company', id: company.id }] },
      { body: 'lost', associations: [{ object: 'company', id: crypto.randomUUID() }] },
    ])
    assert.deepEqual(outcomes.map(typeOf), ['record', 'record', 'validation_error'])
    assert.equal((await records.list('notes')).data.length, 2)
  })

  it('sends the same number of statements for 20 records with links as for 2', async () => {
    const { id } = await records.create('companies', { name: 'Engines' })
    const note = { body: 'linked', associations: [{ object: 'company', id, label: 'about' }] }
    const sent = async (count: number) => {
      const statements: Statement[] = []
      const recorded = recording(db, statements)
      const inputs = Array.from({ length: count }, () => createSchema('notes').parse(note))
      const outcomes = await recorded.tenant(organizationId, testActor, (tx) =>
        createMany(tx, 'notes', inputs),
      )
      recorded.stop()
      assert.deepEqual(new Set(outcomes.map(typeOf)), new Set(['record']))
      return statements.length
    }
    assert.equal(await sent(20), await sent(2))
    const links = await db.system('associations').where({ organization_id: organizationId, label: 'about' })
    assert.equal(links.length, 22)
  })

  it('creates one link for two records that name each other', async () => {
    const [a, b] = await Promise.all(
      ['a', 'b'].map((external_id) => records.create('contacts', { first_name: 'A', external_id })),
    )
    const linkedWith = (id: string, label?: string) => [{ object: 'contacts', id, label }]
    const outcomes = await upsertAll('contacts', 'external_id', [
      { first_name: 'A', external_id: 'a', associations: linkedWith(b!.id, 'sister') },
      { first_name: 'B', external_id: 'b', associations: linkedWith(a!.id) },
    ])
    assert.deepEqual(outcomes.map(typeOf), ['record', 'record'])
    const links = await db.system('associations').where({ organization_id: organizationId })
    assert.deepEqual(
      links.map(({ label }) => label),
      ['sister'],
    )
  })

  it('updates many records like single updates', async () => {
    const [a, b, c] = await Promise.all(
      ['A', 'B', 'C'].map((name) =>
        records.create('contacts', { first_name: name, custom_fields: { n: 1 } }),
      ),
    )
    const company = await records.create('companies', { name: 'Engines' })
    const outcomes = await records.tenant((tx) =>
      updateMany(tx, 'contacts', [
        { id: a!.id, patch: { last_name: 'One', custom_fields: { m: 2 } } },
        { id: b!.id, patch: { last_name: 'Two' }, ifVersion: [7] },
        { id: crypto.randomUUID(), patch: { last_name: 'Three' } },
        { id: c!.id, patch: { first_name: 'C' } },
        { id: c!.id, patch: { first_name: null } },
        { id: a!.id, patch: { company_id: company.id } },
      ]),
    )
    assert.deepEqual(outcomes.map(typeOf), [
      'record',
      'version_conflict',
      'not_found',
      'record',
      'validation_error',
      'record',
    ])
    const now = await records.get('contacts', a!.id)
    assert.deepEqual(now, recordIn(outcomes[5]!))
    assert.deepEqual([now.version, now.last_name, now.custom_fields], [3, 'One', { n: 1, m: 2 }])
    assert.equal((await records.get('contacts', c!.id)).version, 1)
    const changes = (await records.historyOf(a!.id)).map((entry) => [
      entry.version,
      entry.action,
      entry.changes,
    ])
    assert.deepEqual(changes.slice(1), [
      [
        2,
        'updated',
        { last_name: { from: null, to: 'One' }, custom_fields: { from: { n: 1 }, to: { n: 1, m: 2 } } },
      ],
      [3, 'updated', { company_id: { from: null, to: company.id } }],
    ])
    const events = await records.eventsOf(a!.id)
    assert.deepEqual(
      events.map(({ name, previous }) => [name, previous]),
      [
        ['contact.created', null],
        ['contact.updated', { last_name: null, custom_fields: { n: 1 } }],
        ['contact.updated', { company_id: null }],
      ],
    )
    assert.equal((await db.system('associations').where({ organization_id: organizationId })).length, 1)
  })

  it('writes very large records in several statements, all or none', async () => {
    const custom_fields = Object.fromEntries(
      Array.from({ length: 6 }, (_, i) => [`f${i}`, 'x'.repeat(9_900)]),
    )
    const made = await records.tenant((tx) =>
      createMany(
        tx,
        'contacts',
        Array.from({ length: 60 }, (_, i) =>
          createSchema('contacts').parse({ first_name: `N${i}`, custom_fields }),
        ),
      ),
    )
    assert.deepEqual(new Set(made.map(typeOf)), new Set(['record']))
    const { total } = await records.list('contacts', { limit: 1 })
    const events = await db.system('events').where({ organization_id: organizationId }).count()
    assert.deepEqual([total, Number(events[0]!.count)], [60, 60])
  })

  it('never creates a cycle of parent companies', async () => {
    const [a, b, c] = await Promise.all(['A', 'B', 'C'].map((name) => records.create('companies', { name })))
    const outcomes = await records.tenant((tx) =>
      updateMany(tx, 'companies', [
        { id: a!.id, patch: { parent_company_id: b!.id } },
        { id: b!.id, patch: { parent_company_id: a!.id } },
        { id: c!.id, patch: { name: 'D' } },
      ]),
    )
    assert.deepEqual(outcomes.map(typeOf), ['record', 'validation_error', 'record'])
  })

  it('upserts many records by a field, equal values in order', async () => {
    const ada = await records.create('contacts', { first_name: 'Ada', email: 'ada@example.com' })
    for (const name of ['Twin', 'Twine'])
      await records.create('contacts', { first_name: name, email: 'twin@example.com' })
    const outcomes = await upsertAll('contacts', 'email', [
      { email: 'ADA@example.com', last_name: 'L' },
      { email: 'new@example.com', last_name: 'N' },
      { email: 'twin@example.com' },
      { first_name: 'Nobody' },
      { email: 'New@example.com', first_name: 'Newer' },
      { email: 'ada@example.com', first_name: 'Adah' },
    ])
    assert.deepEqual(outcomes.map(typeOf), ['record', 'record', 'conflict', 'record', 'record', 'record'])
    assert.deepEqual(
      outcomes.map((outcome) => 'created' in outcome && outcome.created),
      [false, true, false, true, false, false],
    )
    assert.equal(errorIn(outcomes[2]!).details.candidates!.length, 2)
    assert.equal(recordIn(outcomes[4]!).id, recordIn(outcomes[1]!).id)
    const { first_name, last_name, version } = await records.get('contacts', ada.id)
    assert.deepEqual([first_name, last_name, version], ['Adah', 'L', 3])
  })

  it('creates one record per value for concurrent upserts in any order', async () => {
    const emails = ['a', 'b', 'c', 'd'].map((name) => ({ email: `${name}@example.com` }))
    await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        upsertAll('contacts', 'email', i % 2 ? emails : emails.toReversed()),
      ),
    )
    assert.equal((await records.list('contacts')).data.length, 4)
  })

  it('is atomic with its transaction', async () => {
    const failing = records.tenant(async (tx) => {
      await createMany(tx, 'contacts', [
        createSchema('contacts').parse({ first_name: 'A' }),
        createSchema('contacts').parse({ first_name: 'B' }),
      ])
      throw new Error('no')
    })
    await assert.rejects(failing, /no/)
    for (const table of ['contacts', 'record_history', 'events'])
      assert.equal((await db.system(table).where({ organization_id: organizationId })).length, 0, table)
  })
})

const typeOf = (outcome: Outcome) => ('error' in outcome ? outcome.error.type : 'record')

function recordIn(outcome: Outcome) {
  assert.ok('record' in outcome, 'error' in outcome ? outcome.error.message : '')
  return outcome.record
}

function errorIn(outcome: Outcome) {
  assert.ok('error' in outcome)
  return outcome.error
}
