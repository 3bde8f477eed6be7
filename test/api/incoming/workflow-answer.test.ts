import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { RunEnds } from '../../../api/http/run-ends.ts'
import { Slots } from '../../../api/http/slots.ts'
import type { Call } from '../../../api/incoming/call.ts'
import { createTogether } from '../../../api/incoming/together.ts'
import { answerOfWorkflow } from '../../../api/incoming/workflow-answer.ts'
import type { Accepted } from '../../../db/incoming/accept.ts'
import { storeResponse } from '../../../db/incoming/responses.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { queueRun } from '../../support/worker.ts'

/** Longer than any test takes: no answer below comes from the end of this time. */
const WAIT_SECONDS = 600

describe('the answer of a workflow', () => {
  let db: TestDatabase
  let organization_id: string
  let runEnds: RunEnds
  before(async () => {
    db = await createTestDatabase()
    organization_id = await createOrganization(db)
    runEnds = new RunEnds(db.system)
  })
  after(() => db?.drop())

  const queued = () => queueRun(db, organization_id, { nodes: [{ id: 'a', type: 'stop', config: {} }] })
  const end = (id: string, status = 'completed') =>
    db.system('runs').where({ id }).update({ status, ended_at: new Date() })
  const usual = { success: true, message: 'started a workflow' } as Accepted['answer']
  const responses = new Slots({ of: 'requests', most: { process: 3, organization: 1 }, hint: 'wait' })

  /** A request whose runs are these; `leave` closes its connection. */
  function request(runIds: string[], isRepeated = false) {
    const res = new EventEmitter()
    const headers: Record<string, string> = {}
    const ctx = {
      res,
      status: 200,
      set: (name: string | object, value?: string) =>
        Object.assign(headers, typeof name === 'string' ? { [name]: value } : name),
    }
    const call = {
      ctx,
      deps: { runEnds, responses, together: createTogether(db) },
      webhook: { id: 'w', organization_id, response_wait: WAIT_SECONDS },
    } as unknown as Call
    let warned: string | undefined
    const answer = answerOfWorkflow(call, async (warning) => {
      warned = warning
      return { answer: usual, runIds, isRepeated }
    })
    return { answer, ctx, headers, warned: () => warned, leave: () => res.emit('close') }
  }
  const respond = (id: string, body: string) =>
    db.tenant(organization_id, testActor, (tx) =>
      storeResponse(tx, id, { status: 202, headers: {}, content_type: 'text/plain', body }),
    )

  it('is waited for until one run answers', async () => {
    const ids = [await queued(), await queued()]
    const { answer, ctx } = request(ids)
    await end(ids[0]!)
    await respond(ids[1]!, 'hello')
    runEnds.ended([ids[1]!])
    assert.deepEqual([await answer, ctx.status], ['hello', 202])
  })

  it('is the usual one as soon as all runs have ended without one, also for a repetition', async () => {
    const ids = [await queued(), await queued()]
    const { answer } = request(ids)
    for (const id of ids) await end(id)
    runEnds.ended([])
    assert.equal(await answer, usual)
    assert.equal(await request(ids, true).answer, usual)
    assert.equal(await request([], false).answer, usual)
    assert.equal(await request(['019a0000-0000-7000-8000-000000000001'], true).answer, usual)
  })

  it('is a failure once all runs have ended without one and one failed, also for a repetition', async () => {
    for (const status of ['failed', 'cancelled']) {
      const ids = [await queued(), await queued()]
      const { answer, ctx } = request(ids)
      await end(ids[0]!, status)
      await end(ids[1]!)
      runEnds.ended([])
      const { success, error } = (await answer) as { success: boolean; error: string }
      assert.deepEqual([ctx.status, success, error], [502, false, 'workflow_failed'])
      const again = request(ids, true)
      assert.deepEqual([await again.answer, again.ctx.status], [await answer, 502])
    }
    const [failed, answered] = [await queued(), await queued()]
    await end(failed, 'failed')
    await respond(answered, 'hello')
    const { answer, ctx } = request([failed, answered])
    assert.deepEqual([await answer, ctx.status], ['hello', 202])
  })

  it('is the usual one if a run was skipped, which nobody waits for', async () => {
    const id = await queued()
    await end(id, 'skipped')
    const { answer, ctx } = request([id])
    assert.deepEqual([await answer, ctx.status], [usual, 200])
  })

  it('is the usual one at once where no slot is free, and a sender that leaves frees its slot', async () => {
    const id = await queued()
    for (let round = 0; round < 3; round++) {
      const first = request([id])
      const second = request([id])
      assert.equal(await second.answer, usual)
      assert.deepEqual(
        [first.warned(), /^1 requests of the organization/.test(second.warned()!)],
        [undefined, true],
      )
      first.leave()
      assert.equal(await first.answer, usual)
    }
  })

  it('is that of the first time for a repetition, without a slot', async () => {
    const [open, answered] = [await queued(), await queued()]
    await respond(answered, 'again')
    const waiting = request([open])
    assert.equal(await request([answered], true).answer, 'again')
    waiting.leave()
    await waiting.answer
  })

  it('counts once in a run', async () => {
    const id = await queued()
    assert.ok(await respond(id, 'first'))
    assert.equal(await respond(id, 'second'), undefined)
  })
})
