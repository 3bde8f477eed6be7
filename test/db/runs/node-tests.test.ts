import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { endUnrecordedRun, failRunStart } from '../../../db/runs/moves/ends.ts'
import { createNodeTest, openTestValues } from '../../../db/runs/node-tests.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('the values of a node test', () => {
  const key = randomBytes(32)
  const values = { config: { url: 'https://x.test/' }, inputs: { inputs: { password: 'hunter2' } } }
  const lost = { code: 'lost', message: 'Lost.' }
  let db: TestDatabase
  let organizationId: string

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db?.drop())

  const create = () =>
    db.tenant(organizationId, testActor, (tx) =>
      createNodeTest(tx, key, { node_type: 'api_request', title: 'Test', ...values }),
    )
  const row = (id: string) => db.system('runs').where({ id })

  it('are stored only sealed, and opened with the same key only', async () => {
    const stored = await row(await create()).first()
    assert.doesNotMatch(JSON.stringify(stored), /hunter2|x\.test/)
    assert.deepEqual(openTestValues(key, stored.node), values)
    assert.equal(openTestValues(randomBytes(32), stored.node), undefined)
  })

  it('are removed when the test cannot be started, and when its workflow is lost', async () => {
    const [refused, unrecorded] = [await create(), await create()]
    await row(unrecorded).update({ status: 'running' })
    await db.tenant(organizationId, testActor, async (tx) => {
      assert.ok(await failRunStart(tx, refused, 'refused'))
      assert.ok(await endUnrecordedRun(tx, unrecorded, null, 'lost', lost))
    })
    for (const id of [refused, unrecorded]) {
      const { node } = await row(id).first('node')
      assert.deepEqual(node, { node_type: 'api_request', title: 'Test' })
      assert.equal(openTestValues(key, node), undefined)
    }
  })
})
