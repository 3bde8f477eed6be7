import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('workflow threads', () => {
  let db: TestDatabase
  let worker: TestWorker
  before(async () => {
    db = await createTestDatabase()
  })
  afterEach(() => worker.stop())
  after(() => db?.drop())

  /** The response of a waiting run to the query `__stack_trace`. */
  async function stackTrace(): Promise<string> {
    const wait = { id: 'wait', type: 'delay', config: { for: '1h' } }
    const id = await queueRun(db, await createOrganization(db), { nodes: [wait] })
    await untilRun(db, id, ['running'])
    const handle = worker.client.workflow.getHandle(`run:${id}`)
    return handle.query<string>('__stack_trace').finally(() => handle.terminate())
  }

  it('record no stacks of promises', async () => {
    worker = await startWorker(db)
    await assert.rejects(stackTrace(), /stack traces are not enabled/)
  })

  it('record stacks of promises if the setting asks for them', async () => {
    worker = await startWorker(db, { stackTraces: true })
    assert.match(await stackTrace(), /at loop \(.*run\.ts/)
  })
})

describe('a watched thread', () => {
  const WATCHED = `
    import { Worker } from 'node:worker_threads'
    import { watch } from '${new URL('../../worker/workflow-threads.ts', import.meta.url)}'
    const thread = new Worker(\`require('node:worker_threads').parentPort.on('message', ({ requestId, hang }) => {
      while (hang);
      require('node:worker_threads').parentPort.postMessage({ requestId })
    })\`, { eval: true, execArgv: [] })
    watch(thread, { checkMs: 50, checks: 30 })
    let answers = 0
    thread.on('message', () => {
      if (++answers === 2) process.exit()
    })
    thread.postMessage({ requestId: 1 })
    // Idle for longer than the time limit of a response.
    setTimeout(() => thread.postMessage({ requestId: 2, hang: process.argv[1] === 'hang' }), 2_000)`
  const ended = async (how: string) => {
    const args = ['--import', 'tsx', '--input-type=module', '--eval', WATCHED, how]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk
      })
    const [code] = await once(child, 'close')
    return { code, output }
  }

  it('may be idle', async () => {
    const { code, output } = await ended('go on')
    assert.deepEqual([code, output], [0, ''])
  })

  it('ends its process if it does not answer', async () => {
    const { code, output } = await ended('hang')
    assert.match(output, /a workflow thread does not answer/)
    assert.equal(code, 1)
  })
})
