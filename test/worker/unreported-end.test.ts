import assert from 'node:assert/strict'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { edge } from '../support/nodes.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('an external node whose end is not reported to the workflow yet', () => {
  let db: TestDatabase
  let worker: TestWorker
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })

  before(async () => {
    db = await createTestDatabase()
    worker = await startWorker(db, {
      http: async () => {
        await released
        throw new NodeError('connection_refused', 'Nobody there.')
      },
      // The activity's last transaction has committed; another branch continues before the activity returns.
      advance: (advance) => async (input) => {
        if (!input.happened.some(({ type }) => type === 'timer')) return advance(input)
        const error = JSON.stringify({ code: 'connection_refused', message: 'Nobody there.' })
        const key = { run_id: input.run_id, node_id: 'call' }
        await db.system('run_nodes').where(key).update({ status: 'failed', error, ended_at: new Date() })
        const answer = await advance(input)
        release()
        return answer
      },
    })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  it('still blocks its successors', async () => {
    const set = (id: string, value: string) => ({ id, type: 'set_fields', config: { fields: { value } } })
    const id = await queueRun(db, await createOrganization(db), {
      nodes: [
        set('first', 'x'),
        { id: 'pause', type: 'delay', config: { for: '200ms' } },
        { id: 'call', type: 'api_request', config: { url: 'https://example.com/' } },
        set('sorry', '{{ nodes.call.error.code }}'),
      ],
      edges: [edge('first', 'pause'), edge('first', 'call'), edge('call', 'sorry', 'error')],
      outputs: { why: '{{ nodes.sorry.output.value }}' },
    })
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { why: 'connection_refused' }])
  })
})
