import assert from 'node:assert/strict'
import { createImport } from '../../../db/imports/imports.ts'
import { NamespaceAttributes } from '../../../worker/namespace-attributes.ts'
import { FILE_SORTS, filesQueue } from '../../../worker/queues/files.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { testLog } from '../../support/worker.ts'

describe('the queue of imports', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('gives each organization two slots, oldest import first, and each import to one relay', async () => {
    const queue = filesQueue(FILE_SORTS[0]!, {
      taskQueue: 'test',
      attributes: new NamespaceAttributes(testLog),
    })
    const ids: string[][] = []
    for (let organization = 0; organization < 2; organization++) {
      const organizationId = await createOrganization(db)
      const made: string[] = []
      for (let i = 0; i < 3; i++)
        made.push(
          await db.tenant(organizationId, testActor, async (tx) => {
            const { id } = await createImport(tx, {
              entity: 'contacts',
              mode: 'create',
              dry_run: false,
              mapping: {},
            })
            await tx.trx('imports').where({ id }).update({ status: 'queued', starts: 1 })
            return id
          }),
        )
      ids.push(made)
    }
    const first = await queue.claim(db.system, 10)
    assert.deepEqual(
      first.map(({ id }) => id).sort(),
      [...ids[0]!.slice(0, 2), ...ids[1]!.slice(0, 2)].sort(),
    )
    assert.deepEqual(await queue.claim(db.system, 10), [], 'all of it is leased')

    await queue.started!(db.system, first)
    assert.deepEqual(await queue.claim(db.system, 10), [], 'both slots are taken')
    await db.system('imports').where({ id: ids[0]![0] }).update({ status: 'completed' })
    assert.deepEqual(
      (await queue.claim(db.system, 10)).map(({ id }) => id),
      [ids[0]![2]],
    )
  })

  it('claims an import again when its lease expires', async () => {
    await db.system('imports').update({ lease_until: db.system.raw("now() - interval '1 second'") })
    const queue = filesQueue(FILE_SORTS[0]!, {
      taskQueue: 'test',
      attributes: new NamespaceAttributes(testLog),
    })
    assert.equal((await queue.claim(db.system, 1)).length, 1)
  })
})
