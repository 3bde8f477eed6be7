import assert from 'node:assert/strict'
import { answerParent, insertChildWaits, listAnswers } from '../../../db/runs/children.ts'
import { cancelRun } from '../../../db/runs/moves/ends.ts'
import { answeredWaits } from '../../../db/runs/waits.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { queueRun } from '../../support/worker.ts'

describe('waits for child runs', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('are claimed once they are answered; a late record of a signal does not cover a newer answer', async () => {
    const organizationId = await createOrganization(db)
    const nodes = [{ id: 'a', type: 'stop', config: {} }]
    const [parent, child] = [
      await queueRun(db, organizationId, { nodes }),
      await queueRun(db, organizationId, { nodes }),
    ]
    const wait = () =>
      db.tenant(organizationId, testActor, (tx) =>
        insertChildWaits(tx, parent, [{ path: '', node_id: 'a', child_run_id: child }]),
      )
    await wait()
    assert.deepEqual(await answeredWaits.claim(db.system, 10), [])
    await db.tenant(organizationId, testActor, async (tx) => {
      await cancelRun(tx, child)
      await answerParent(tx, child)
    })
    const first = await answeredWaits.claim(db.system, 10)
    assert.equal(first.length, 1)
    assert.deepEqual(await answeredWaits.claim(db.system, 10), [], 'it is leased')
    // After a reset the node waits for the same child again, and is answered at once.
    await wait()
    await answeredWaits.release(db.system, first)
    const second = await answeredWaits.claim(db.system, 10)
    assert.equal(second.length, 1)
    await answeredWaits.release(db.system, second)
    await db.system('run_waits').where({ run_id: parent }).update({ lease_until: null })
    assert.deepEqual(await answeredWaits.claim(db.system, 10), [])
    const answers = await db.tenant(organizationId, testActor, (tx) =>
      listAnswers(tx, parent, [{ path: '', node_id: 'a' }]),
    )
    assert.equal(answers.get('a')?.status, 'cancelled')
  })
})
