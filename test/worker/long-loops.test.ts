import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { edge } from '../support/nodes.ts'
import { recordStatements } from '../support/statements.ts'
import { historyOf, queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
const each = (config: Record<string, unknown>) => ({
  id: 'each',
  type: 'for_each',
  config: { items: '{{ inputs.items }}', output: '{{ item }}', ...config },
})
const inputs = { items: { type: 'array' as const } }
const outputs = { values: '{{ nodes.each.output.items | map: "output" }}' }

describe('long loops', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let calls = 0
  let open = 0
  let most = 0

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, {
      http: async () => {
        calls += 1
        open += 1
        most = Math.max(most, open)
        await sleep(1)
        open -= 1
        return httpResponse()
      },
    })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  it('of 4,000 items cost the same for each, and few events', async () => {
    const body = { id: 'body', type: 'set_fields', config: { fields: { double: '{{ item | times: 2 }}' } } }
    const definition = { nodes: [each({}), body], edges: [edge('each', 'body', 'item')], inputs, outputs }
    const statements = recordStatements()
    const id = await queueRun(db, organizationId, definition, { items: numbers(4_000) })
    const run = await untilRun(db, id)
    const tags = statements.take().map((line) => line.split(' → ')[1]!)
    statements.stop()
    assert.deepEqual(run.outputs?.values, numbers(4_000))
    const events = await historyOf(worker.client, `run:${id}`)
    assert.ok(events.length < 400, `${events.length} events`)
    // The last segments read and write no more rows than the first ones.
    const rows = tags.map((tag) => Number(/\d+$/.exec(tag)?.[0] ?? 0))
    const part = Math.floor(rows.length / 4)
    const sum = (some: number[]) => some.reduce((all, one) => all + one, 0)
    const [first, last] = [sum(rows.slice(part, 2 * part)), sum(rows.slice(2 * part, 3 * part))]
    assert.ok(first > 0 && last < 1.5 * first, `${first} rows, then ${last}`)
  })

  it('continue as new when their history is long, and repeat no call', async () => {
    const call = { id: 'call', type: 'api_request', config: { method: 'POST', url: 'https://example.com/' } }
    const definition = {
      nodes: [each({ concurrency: 50 }), call],
      edges: [edge('each', 'call', 'item')],
      inputs,
      outputs,
      settings: { timeout: '1h' },
    }
    const id = await queueRun(db, organizationId, definition, { items: numbers(600) })
    const run = await untilRun(db, id)
    assert.deepEqual(run.outputs?.values, numbers(600))
    assert.deepEqual([calls, most <= 50], [600, true])
    const executions = []
    for await (const one of worker.client.workflow.list({ query: `WorkflowId = 'run:${id}'` }))
      executions.push(one)
    assert.ok(executions.length >= 2, 'it continued as new')
    for (const one of executions) assert.ok(one.historyLength < 2_400, `${one.historyLength} events`)
  })
})
