import { deepEqual, equal, match } from 'node:assert/strict'
import { CallSlots } from '../../activities/slots/call-slots.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

/** A service that never answers: the call ends with an error of its library when it is aborted. */
const hang = (_request: unknown, { signal }: { signal: AbortSignal }) =>
  new Promise<never>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(new Error('socket closed')), { once: true }),
  )

describe('the test of a node whose service does not answer', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  const slots = new CallSlots({ all: 2, firsts: 0, waiting: 0 })
  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    worker = await startWorker(db, { http: hang, nodeTestMs: 300, slots, secretsKey: api.secretsKey })
  })
  after(async () => {
    await worker?.stop()
    await api?.close()
    await db?.drop()
  })

  it('fails with its time limit, as the node does in a run', async () => {
    const body = {
      node_type: 'ai_prompt',
      config: { model: 'm', prompt: 'Hello', base_url: 'https://ai.example.com/v1' },
      confirm: true,
    }
    const { status, body: tested } = await api.request('POST', '/v1/workflows/nodes/test', { body })
    equal(status, 200)
    deepEqual(tested.error, { code: 'timeout', message: 'The node exceeded its timeout of 300 ms.' })
    equal(tested.rendered_config.model, 'm')
    match(tested.log.at(-1).message, /^failed: timeout: /)
  })

  it('fails without a call if the organization has no slot for it, and holds none after it', async () => {
    const held = await slots.take({ organizationId: api.organizationId }, new AbortController().signal)
    const body = { node_type: 'api_request', config: { url: 'https://hangs.example.com' }, confirm: true }
    const { body: tested } = await api.request('POST', '/v1/workflows/nodes/test', { body })
    equal(tested.error.code, 'no_slot')
    held.release()
    equal((await api.request('POST', '/v1/workflows/nodes/test', { body })).body.error.code, 'timeout')
    deepEqual(slots.use, { held: 0, waiting: 0, refused: 1 })
  })
})
