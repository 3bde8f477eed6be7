import assert from 'node:assert/strict'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { savepoint } from '../../../db/postgres/tenancy.ts'
import {
  cancelRun,
  endUnrecordedRun,
  failRunStart,
  skipRun,
  terminateRun,
} from '../../../db/runs/moves/ends.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { set } from '../../support/nodes.ts'
import { queueRun } from '../../support/worker.ts'

describe('the ends of runs outside of a segment', () => {
  let db: TestDatabase
  let organizationId: string
  let counted: string[]
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    db.onEnd(({ status }) => counted.push(status))
  })
  beforeEach(() => {
    counted = []
  })
  after(() => db?.drop())

  const queued = () => queueRun(db, organizationId, { nodes: [set('a')] })
  const inTenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organizationId, testActor, work)

  for (const [status, end] of [
    ['cancelled', (tx, id) => cancelRun(tx, id)],
    ['terminated', (tx, id) => terminateRun(tx, id)],
    ['skipped', (tx, id) => skipRun(tx, id, 'too many')],
    ['failed', (tx, id) => failRunStart(tx, id, 'refused')],
  ] as [string, (tx: Tenant, id: string) => Promise<unknown>][])
    it(`are counted once: ${status}`, async () => {
      const id = await queued()
      await inTenant((tx) => end(tx, id))
      await inTenant((tx) => end(tx, id))
      assert.deepEqual(counted, [status])
    })

  it('are counted once: lost', async () => {
    const id = await queued()
    await db.system('runs').where({ id }).update({ status: 'running' })
    const end = () =>
      inTenant((tx) => endUnrecordedRun(tx, id, null, 'lost', { code: 'lost', message: 'It is lost.' }))
    assert.deepEqual([await end(), await end()], [true, false])
    assert.deepEqual(counted, ['lost'])
  })

  it('are not counted if their transaction or savepoint is rolled back', async () => {
    const id = await queued()
    const fails = async (tx: Tenant) => {
      await terminateRun(tx, id)
      throw new Error('rolled back')
    }
    await assert.rejects(inTenant(fails), /rolled back/)
    await inTenant((tx) => savepoint(tx, fails).catch(() => {}))
    assert.deepEqual(counted, [])
    await inTenant((tx) => savepoint(tx, (inner) => terminateRun(inner, id)))
    assert.deepEqual(counted, ['terminated'])
  })
})
