import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { advanceExport } from '../../../db/exports/advance.ts'
import { createExport } from '../../../db/exports/exports.ts'
import { migrate } from '../../../db/migrations/migrate.ts'
import { kinds } from '../../../db/model/records/kinds/index.ts'
import { advanceBulkJob, bulkJobs } from '../../../db/records/bulk/advance.ts'
import { createBulkJob } from '../../../db/records/bulk/jobs.ts'
import { setRates } from '../../../db/records/exchange-rates.ts'
import { listRecords } from '../../../db/records/list.ts'
import { usedCurrencies } from '../../../db/records/used-currencies.ts'
import { recording, type Statement } from '../../bench/recording.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { everything, filtersOf, recordsOf, type TestRecords } from '../../support/records.ts'

describe('the rates by which amounts are compared', () => {
  let db: TestDatabase
  let organizationId: string
  let records: TestRecords
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())
  // In US dollars.
  beforeEach(async () => {
    organizationId = await createOrganization(db)
    records = recordsOf(db, organizationId)
  })

  const deal = (amount: string | null, currency: string | null) =>
    records.create('deals', { name: `${amount} ${currency}`, amount, currency })
  const names = async (filters: Record<string, string>, query: object = {}) => {
    const { data } = await records.list('deals', {
      filters: filtersOf('deals', filters),
      sort: 'amount',
      order: 'asc',
      ...query,
    })
    return data.map(({ name }) => name).join(', ')
  }
  const selection = (filters: Record<string, string>) => {
    const { limit: _, offset: __, count: ___, ...rest } = everything
    return { ...rest, sort: 'amount', order: 'asc' as const, filters: filtersOf('deals', filters) }
  }

  it('are none where all amounts have one currency, also one that is not of the organization', async () => {
    await deal('1000', 'EUR')
    await deal('2000', 'EUR')
    equal(await names({ amount: '1000' }), '1000 EUR')
    equal(await names({ 'amount[gte]': '2000' }), '2000 EUR')
    // No amount: its currency is that of none.
    await deal(null, 'USD')
    await deal(null, 'KWD')
    equal(await names({ amount: '1000' }), '1000 EUR')
    const { id } = await deal('5', 'JPY')
    ok((await names({ amount: '1000' })) === '')
    await records.tenant((tx) => tx.trx('deals').where({ id }).update({ currency: null }))
    // Without a currency, it is in that of the organization.
    equal(await names({ amount: '1000' }), '')
    await records.tenant((tx) => tx.trx('deals').where({ id }).update({ deleted_at: new Date() }))
    equal(await names({ amount: '1000' }), '1000 EUR')
    equal(await names({ amount: '5' }, { deleted: true }), '5 JPY')
  })

  it('leave the sort to an index where only a record without an amount has a currency without a rate', async () => {
    await deal('3', 'EUR')
    await deal('2', 'USD')
    await deal(null, 'KWD')
    const listed = () =>
      records.tenant((tx) =>
        listRecords(
          tx,
          'deals',
          { ...everything, sort: 'amount', order: 'asc', count: 'none' },
          undefined,
          0,
        ),
      )
    equal((await listed()).data.map(({ name }) => name).join(', '), '2 USD, 3 EUR, null KWD')
    await deal('1', 'KWD')
    await rejects(listed, /too many to be sorted/)
  })

  it('are those of its cursor: with others, it is refused as one of another query', async () => {
    for (const amount of ['1', '2', '3']) await deal(amount, 'EUR')
    const first = (query: object) =>
      records.list('deals', { sort: 'amount', order: 'asc', limit: 1, ...query })
    const refused = (query: object) => rejects(first(query), /the cursor belongs to another query/)
    const filters = filtersOf('deals', { 'amount[gte]': '1' })
    const alone = await first({})
    await deal('9', 'USD')
    await refused({ cursor: alone.next_cursor })
    const pages = [await first({}), await first({ sort: 'id', filters }), await first({ sort: 'id' })]
    await first({ cursor: pages[0]!.next_cursor })
    await records.tenant((tx) => setRates(tx, { EUR: '1.5' }))
    await refused({ cursor: pages[0]!.next_cursor })
    await refused({ sort: 'id', filters, cursor: pages[1]!.next_cursor })
    await first({ sort: 'id', cursor: pages[2]!.next_cursor })
  })

  it('of an export and a bulk job are kept from its first page to its last', async () => {
    const made = await Promise.all(
      Array.from({ length: 70 }, (_, n) => deal(`${n + 1}`, n % 2 ? 'EUR' : 'USD')),
    )
    await records.tenant((tx) => setRates(tx, { EUR: '2' }))
    const list_query = selection({ 'amount[gte]': '1' })
    const { id } = await records.tenant((tx) =>
      createExport(tx, { entity: 'deals', query: {}, list_query, fields: ['name'], bom: false, options: {} }),
    )
    const jobId = await records.tenant((tx) =>
      createBulkJob(tx, {
        entity: 'deals',
        action: 'update',
        query: {},
        selection: list_query,
        data: { source: 'fair' },
      }),
    )
    const next = () => records.tenant((tx) => advanceExport(tx, id))
    const [claimed] = await bulkJobs.claim(db.system, 1)
    equal(claimed!.id, jobId)
    const page = () => records.tenant((tx) => advanceBulkJob(tx, claimed!, 100, 40))
    equal((await next()).status, 'running')
    equal(await page(), true)
    await records.tenant((tx) => setRates(tx, { EUR: '0.001' }))
    // A currency without a rate, which is new.
    await deal('7', 'KWD')
    const ended = await next()
    deepEqual([ended.status, ended.rows, ended.error], ['completed', 70, null])
    while (await page());
    const row = await db.system('bulk_jobs').where({ id: jobId }).first()
    deepEqual([row.error, row.total, row.done, row.refused], [null, 70, 70, 0])
    equal(made.length, 70)
  })

  it('of an export that sorts all deals leave none out, in whatever currency it was made since', async () => {
    for (let n = 0; n < 60; n++) await deal(`${n + 1}`, n % 2 ? 'EUR' : 'USD')
    const { id } = await records.tenant((tx) =>
      createExport(tx, {
        entity: 'deals',
        query: {},
        list_query: selection({}),
        fields: ['name'],
        bom: false,
        options: {},
      }),
    )
    const next = () => records.tenant((tx) => advanceExport(tx, id))
    await next()
    await deal('7', 'KWD')
    const ended = await next()
    deepEqual([ended.status, ended.rows], ['completed', 61])
  })

  it('are asked for after one step in an index for each currency, of every kind', async () => {
    for (const kind of Object.values(kinds).filter(({ fields }) => fields.currency)) {
      const statements: Statement[] = []
      const recorded = recording(db, statements)
      await recorded.tenant(organizationId, testActor, (tx) =>
        usedCurrencies(tx, kind, { own: 'USD', deleted: false }),
      )
      recorded.stop()
      const { sql, bindings } = statements.at(-1)!
      const { rows } = await records.tenant(async (tx) => {
        await tx.trx.raw(
          'set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off',
        )
        return tx.trx.raw(`explain ${sql}`, bindings as never)
      })
      const plan = rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n')
      match(plan, new RegExp(`using ${kind.entity}_currency\\b`), plan)
      ok(!/Seq Scan|Sort/.test(plan), plan)
    }
  })

  it('have a migration that a crash lets begin anew, after a build of an index that was cancelled', async () => {
    const own = await createTestDatabase()
    const last = '0034_exchange_rates'
    try {
      await own.asOwner(async (client) => {
        await client.query('delete from agx_migrations where name = $1', [last])
        await client.query(
          "update pg_index set indisvalid = false where indexrelid = 'deals_currency'::regclass",
        )
        deepEqual(await migrate(own.url), [last])
        const { rows } = await client.query(
          "select indisvalid from pg_index where indexrelid = 'deals_currency'::regclass",
        )
        deepEqual(rows, [{ indisvalid: true }])
      })
    } finally {
      await own.drop()
    }
  })
})
