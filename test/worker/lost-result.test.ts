import assert from 'node:assert/strict'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('a segment whose result was lost', () => {
  let db: TestDatabase
  let worker: TestWorker
  const answers: unknown[] = []
  before(async () => {
    db = await createTestDatabase()
    worker = await startWorker(db, {
      // The first attempt of each segment commits, but its result is lost.
      advance: (advance) => async (input) => {
        const answer = await advance(input)
        answers.push(answer.commands)
        if (answers.length % 2 === 1) throw new Error('the result is lost')
        return answer
      },
    })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  it('is not executed again: it returns the same result, and its event is raised once', async () => {
    const organizationId = await createOrganization(db)
    const id = await queueRun(db, organizationId, {
      nodes: [
        { id: 'paid', type: 'emit_event', config: { event: 'invoice.paid', data: { n: 1 } } },
        { id: 'pause', type: 'delay', config: { for: '10ms' } },
      ],
      edges: [{ from: 'paid', handle: 'success', to: 'pause' }],
    })
    const run = await untilRun(db, id)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    await worker.client.workflow.getHandle(`run:${id}`).result()
    assert.equal(answers.length, 4)
    assert.deepEqual([answers[0], answers[2]], [answers[1], answers[3]])
    const raised = await db.system('events').orderBy('id')
    assert.deepEqual(raised.map((event) => event.name).sort(), [
      'invoice.paid',
      'workflow.completed',
      'workflow.started',
    ])
  })
})
