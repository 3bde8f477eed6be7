import { deepEqual, equal, ok } from 'node:assert/strict'
import { claimRuns } from '../../../db/runs/claims.ts'
import { admitRuns } from '../../../db/runs/holds/admit.ts'
import { listDue } from '../../../db/runs/holds/held.ts'
import { NOWHERE, wakeMissed } from '../../../db/runs/holds/missed-keys.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { planOf, statementsOf } from '../../support/plans.ts'
import { queueRun } from '../../support/worker.ts'

const RELAY = { id: '00000000-0000-4000-8000-000000000000', starts: 100, active: 10_000 }
const MANY = 20_000
const node = [{ id: 'end', type: 'stop', config: {} }]

describe('a backlog of held runs', () => {
  let db: TestDatabase
  let busy: string
  let other: string
  before(async () => {
    db = await createTestDatabase()
    // The one with the lower id is looked at first.
    const both = [await createOrganization(db), await createOrganization(db)].sort()
    busy = both[0]!
    other = both[1]!
  })
  after(() => db?.drop())

  const settings = { concurrency: { policy: 'queue' as const, limit: 1, key: '{{ inputs.key }}' } }
  const inputs = { key: { type: 'string' as const } }
  const start = (organization = busy) =>
    queueRun(db, organization, { nodes: node, inputs, settings }, { key: 'a' })
  const copies = (of: string, sets: string, count = MANY) =>
    db.asOwner(async (client) => {
      await client.query(
        `insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, trigger, inputs, priority,
           hold, hold_until, concurrency_key, keys)
         select r.organization_id, gen_random_uuid(), r.workflow_id, 1, 'Test', r.trigger, r.inputs, 1, ${sets}
         from runs r, generate_series(1, ${count}) i where r.id = $1`,
        [of],
      )
      await client.query('analyze runs')
    })
  /** The rows that the statements of some work read at most. */
  async function read(work: (db: TestDatabase) => Promise<unknown>): Promise<number> {
    const rows: number[] = []
    for (const statement of await statementsOf(db, work as never)) {
      const plan = await db.asOwner((client) => planOf(client, statement))
      deepEqual(
        plan.scanned.filter((table) => table === 'runs'),
        [],
        statement.sql,
      )
      rows.push(plan.rows)
    }
    return Math.max(...rows)
  }
  const admit = (organization: string) => db.tenant(organization, testActor, (tx) => admitRuns(tx, 100))

  it('of one key costs claims and other organizations nothing', async () => {
    const first = await start()
    await admit(busy)
    const { concurrency_key, hold } = await db.system('runs').where({ id: first }).first()
    equal(hold, null)
    await copies(first, `'key', 'infinity', '${concurrency_key}', '{"concurrency": "a"}'`)
    const theirs = await queueRun(db, other, { nodes: node })
    const claimed = await claimRuns(db.system, RELAY, 100)
    deepEqual(claimed.map(({ id }) => id).sort(), [first, theirs].sort())

    const again = await start()
    deepEqual(await listDue(db.system, 10), [busy])
    ok((await read((one) => claimRuns(one.system, RELAY, 100))) < 1_000)
    ok((await read((one) => listDue(one.system, 10))) < 1_000)
    await admit(busy)
    equal((await db.system('runs').where({ id: again }).first()).hold, null, 'another workflow, another key')
  })

  it('of 20,000 keys is looked through in pages, and ends that were missed are found, in each organization at once', async () => {
    const [{ id }] = await db.system('runs').where({ organization_id: busy, hold: 'key' }).limit(1)
    await copies(id, `'key', 'infinity', gen_random_uuid(), '{}'`)
    // Another hold of others costs it nothing.
    await copies(id, `'rate', 'infinity', null, '{}'`)
    const theirs = await start(other)
    await admit(other)
    await copies(theirs, `'key', 'infinity', gen_random_uuid(), '{}'`, 1)
    ok((await read((one) => wakeMissed(one.system, NOWHERE, 200))) < 12_000)
    const woken = async (organization_id: string) =>
      Number(
        (await db
          .system('runs')
          .where({ organization_id, hold: 'key' })
          .where('hold_until', '<=', db.system.fn.now())
          .count('* as n')
          .first())!.n,
      )
    await db.system('runs').where({ hold: 'key' }).update({ hold_until: 'infinity' })
    let places = await wakeMissed(db.system, NOWHERE, 200)
    deepEqual([await woken(busy), await woken(other)], [100, 1])
    let looks = 0
    for (; (await woken(busy)) < MANY; looks++) {
      ok(looks < 10, 'each look goes on where the one before ended')
      places = await wakeMissed(db.system, places, 5_000)
    }
    equal(looks, 8, 'half of a look is for each organization')
    // Each key without an open run wakes one, and the busy key none.
    deepEqual([await woken(busy), await woken(other)], [MANY, 1])
    ok(await admit(busy))
    const [freed] = await db
      .system('runs')
      .where({ organization_id: busy, hold: null, priority: 1 })
      .count('* as released')
    equal(Number(freed!.released), 100)
  })
})
