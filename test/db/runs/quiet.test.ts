import assert from 'node:assert/strict'
import { listQuietRuns, pickQuietRuns } from '../../../db/runs/queue.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { insertManyRuns } from '../../support/many-runs.ts'
import { planOf, statementsOf } from '../../support/plans.ts'

const ACTIVE = 20_000
const QUIET = '5 seconds'

describe(`of ${ACTIVE} active runs`, () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
    // The first third is a day old, the others have been quiet for six seconds to three minutes, and the last not at all.
    await insertManyRuns(db, ACTIVE, {
      updatedAt: `case when i <= ${ACTIVE / 3} then now() - interval '1 day' - i * interval '1 millisecond'
        when i < ${ACTIVE} then now() - interval '6 seconds' - (i - ${ACTIVE / 3}) * interval '13 milliseconds' else now() end`,
      sleepsUntil: 'null::timestamptz',
    })
    await db.asOwner((client) => client.query('vacuum analyze'))
  })
  after(() => db?.drop())

  it('a few are picked at the cost of these few', async () => {
    const [statement] = await statementsOf(db, ({ system }) => pickQuietRuns(system, QUIET, 10))
    const { rows, scanned, nodes } = await db.asOwner((client) => planOf(client, statement!))
    assert.ok(rows < 100, `${rows} rows by ${nodes.join(', ')}`)
    assert.ok(!scanned.includes('runs'))
  })

  it('old ones and new ones are picked, and none that is not quiet', async () => {
    const ages = new Set<string>()
    const picked = new Set<string>()
    for (let time = 0; time < 30; time++) {
      const rows = await pickQuietRuns(db.system, QUIET, 10)
      assert.ok(rows.length >= 1 && rows.length <= 10)
      assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length)
      for (const { id } of rows) picked.add(id)
    }
    const rows = await db
      .system('runs')
      .whereIn('id', [...picked])
      .select('updated_at')
    for (const { updated_at } of rows) {
      const age = Date.now() - updated_at.getTime()
      ages.add(age > 3_600_000 ? 'a day' : age > 30_000 ? 'a minute' : age > 5_000 ? 'seconds' : 'none')
    }
    assert.deepEqual([...ages].sort(), ['a day', 'a minute', 'seconds'])
  })

  it('the only quiet one is picked each time, and the longest quiet ones are listed', async () => {
    const [oldest] = await listQuietRuns(db.system, '1 day', 1)
    await db.system('runs').whereNot({ id: oldest!.id }).update({ updated_at: db.system.fn.now() })
    for (let time = 0; time < 10; time++)
      assert.deepEqual(
        (await pickQuietRuns(db.system, QUIET, 10)).map(({ id }) => id),
        [oldest!.id],
      )
    await db.system('runs').update({ updated_at: db.system.fn.now() })
    assert.deepEqual(await pickQuietRuns(db.system, QUIET, 10), [])
  })
})
