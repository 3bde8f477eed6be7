import assert from 'node:assert/strict'
import type { KindName } from '../../../db/model/records/kind.ts'
import { kinds } from '../../../db/model/records/kinds/index.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { type ListQuery, listRecords } from '../../../db/records/list.ts'
import { recording, type Statement } from '../../bench/recording.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { filtersOf } from '../../support/records.ts'

const COUNT = 3_000
/** Records without a value, and the last ones with one. */
const TAGS = "case when n % 5 = 0 or n % 211 > 208 then array['vip'] else '{}'::text[] end"

/**
 * SQL by kind and column: the value of the nth record. Many values are equal, and every fifth is null if the column
 * allows it.
 */
const COLUMNS: Partial<Record<KindName, Record<string, string>>> = {
  contacts: {
    last_name: "case when n % 5 > 0 then chr(65 + n % 26) || 'name' || n % 7 end",
    lead_status: "case n % 3 when 0 then 'new' else 'open' end",
    do_not_contact: 'false',
  },
  companies: { name: "chr(97 + n % 26) || 'name' || n % 7" },
  deals: {
    name: "'Deal'",
    pipeline: "'default'",
    stage: "case n % 3 when 0 then 'won' else 'lead' end",
    probability: '10',
    amount: 'case when n % 5 > 0 then n % 211 end',
    expected_close_date: "case when n % 5 > 0 then date '2026-01-01' + n % 211 end",
  },
  tasks: {
    title: "'Task'",
    status: "'todo'",
    priority: "'low'",
    type: "'todo'",
    due_at: "case when n % 5 > 0 then timestamptz '2026-01-01' + n % 211 * interval '1 hour' end",
  },
  activities: {
    type: "'call'",
    status: "'completed'",
    occurred_at: "timestamptz '2026-01-01' + n % 211 * interval '1 hour'",
  },
  products: { name: "chr(97 + n % 26) || 'name' || n % 7", active: 'true' },
}

/** Every field with `sorted`. */
const SORTED = Object.values(kinds).flatMap(({ entity, fields }) =>
  Object.keys(fields)
    .filter((name) => fields[name]!.sorted)
    .map((name) => ({ entity, name })),
)

describe('lists in the order of an indexed field', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    for (const organization of [organizationId, await createOrganization(db)])
      for (const [entity, columns] of Object.entries(COLUMNS))
        await db.system.raw(
          `insert into ${entity} (organization_id, id, ${Object.keys(columns).join(', ')}, tags, custom_fields, version,
             created_at, updated_at, created_by, updated_by, search_text)
           select ?, gen_random_uuid(), ${Object.values(columns).join(', ')}, ${TAGS}, '{}', 1, now(), now(), '{}', '{}',
             ' every ' || n % 2
           from generate_series(1, ${COUNT}) n`,
          [organization],
        )
    await db.asOwner((client) => client.query('vacuum analyze'))
  })
  after(() => db.drop())

  const tenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organizationId, testActor, work)
  const page = (kind: KindName, query: Partial<ListQuery>) =>
    tenant((tx) =>
      listRecords(tx, kind, {
        limit: 50,
        offset: 0,
        sort: 'created_at',
        order: 'asc',
        match: 'all',
        count: 'none',
        filters: [],
        ...query,
      }),
    )
  const walk = async (kind: KindName, query: Partial<ListQuery>): Promise<string[]> => {
    const ids: string[] = []
    for (let cursor: string | undefined; ; ) {
      const { data, next_cursor } = await page(kind, { ...query, ...(cursor ? { cursor } : {}) })
      ids.push(...data.map(({ id }) => id))
      if (next_cursor === null) return ids
      cursor = next_cursor
    }
  }
  /** The result of PostgreSQL without any of our indexes. */
  const expected = async (kind: KindName, name: string, order: string, where = 'true') => {
    const key = kinds[kind].fields[name]!.type === 'text' ? `lower(${name})` : name
    const { rows } = await db.system.raw<{ rows: { id: string }[] }>(
      `select id from ${kind} where organization_id = ? and ${where} order by ${key} ${order} nulls last, id ${order}`,
      [organizationId],
    )
    return rows.map(({ id }) => id)
  }

  it('are for the fields that people sort by', () => {
    assert.deepEqual(
      SORTED.map(({ entity, name }) => `${entity}.${name}`),
      [
        'contacts.last_name',
        'companies.name',
        'deals.amount',
        'deals.stage_changed_at',
        'deals.expected_close_date',
        'tasks.due_at',
        'activities.occurred_at',
        'products.name',
      ],
    )
  })

  for (const { entity, name } of SORTED)
    for (const order of ['asc', 'desc'] as const)
      it(`${entity} by ${name} ${order}: every record once, nulls last, by cursor and by offset`, async () => {
        const all = await expected(entity, name, order)
        assert.equal(all.length, COUNT)
        assert.deepEqual(await walk(entity, { sort: name, order, limit: 190 }), all)
        for (const offset of [0, COUNT * 0.8 - 7, COUNT - 3]) {
          const { data } = await page(entity, { sort: name, order, limit: 20, offset })
          assert.deepEqual(
            data.map(({ id }) => id),
            all.slice(offset, offset + 20),
          )
        }
      })

  for (const [what, kind, name, filters, where] of [
    ['a common value', 'contacts', 'last_name', { lead_status: 'new' }, "lead_status = 'new'"],
    ['a common value', 'deals', 'amount', { 'stage[ne]': 'won' }, "stage <> 'won'"],
    ['a rare value', 'deals', 'amount', { 'amount[lte]': '3' }, 'amount <= 3'],
    ['no record', 'contacts', 'last_name', { lead_source: 'none' }, 'false'],
    // The planner's estimate favours walking the index, but there is no match up to the row limit.
    ['what is far along the order', 'deals', 'amount', { 'tags[has]': 'vip' }, "tags <> '{}'"],
    ['records without a value', 'tasks', 'due_at', { 'due_at[is_null]': 'true' }, 'due_at is null'],
  ] as const)
    for (const order of ['asc', 'desc'] as const)
      it(`${kind} by ${name} ${order} with a filter for ${what}`, async () => {
        const query = { sort: name, order, limit: 7, filters: filtersOf(kind, filters) }
        assert.deepEqual(await walk(kind, query), await expected(kind, name, order, where))
      })

  it('with free text', async () => {
    const query = { sort: 'amount', order: 'desc', limit: 400, q: '1' } as const
    assert.deepEqual(
      await walk('deals', query),
      await expected('deals', 'amount', 'desc', "search_text like '% 1'"),
    )
  })

  it('sort few records without an index, and refuse it for more', async () => {
    const sorted = (query: Partial<ListQuery>, max: number) =>
      tenant((tx) =>
        listRecords(
          tx,
          'deals',
          {
            limit: 5,
            offset: 0,
            sort: 'stage,-amount',
            order: 'asc',
            match: 'all',
            count: 'none',
            filters: [],
            ...query,
          },
          undefined,
          max,
        ),
      )
    await assert.rejects(sorted({}, COUNT / 2), (error: { details: { issues: { msg: string }[] } }) => {
      assert.match(error.details.issues[0]!.msg, /too many to be sorted by stage,-amount/)
      return true
    })
    const { next_cursor } = await sorted({}, COUNT * 2)
    assert.equal((await sorted({ cursor: next_cursor! }, COUNT / 2)).data.length, 5)
    for (const sort of ['amount', '-created_at,amount', 'id'])
      assert.equal((await sorted({ sort }, 1)).data.length, 5, sort)
  })

  for (const { entity, name } of SORTED)
    for (const order of ['asc', 'desc'] as const)
      it(`${entity} by ${name} ${order}: first page and cursor page read the index and sort nothing else`, async () => {
        const first = await page(entity, { sort: name, order })
        for (const cursor of [undefined, first.next_cursor!]) {
          const statements: Statement[] = []
          const recorded = recording(db, statements)
          await recorded.tenant(organizationId, testActor, (tx) =>
            listRecords(tx, entity, {
              limit: 50,
              offset: 0,
              sort: name,
              order,
              match: 'all',
              count: 'none',
              filters: [],
              cursor,
            }),
          )
          recorded.stop()
          const { sql, bindings } = statements.at(-1)!
          const { rows } = await tenant(async (tx) => tx.trx.raw(`explain ${sql}`, bindings as never))
          const plan = rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n')
          assert.match(plan, new RegExp(`using ${entity}_${name}\\b`), plan)
          assert.doesNotMatch(plan, /Seq Scan/, plan)
        }
      })
})
