import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { httpResponse } from '../support/http-response.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const LAST = 6

describe('runs that read the pages of a service', () => {
  let calls: number[] = []
  /** How often each page still fails. */
  let failures = new Map<number, number>()
  let delay = 0
  const suite = withWorker({
    http: async (request, { signal }) => {
      const page = Number(new URL(request.url).searchParams.get('page'))
      calls.push(page)
      await setTimeout(delay, undefined, { signal })
      const left = failures.get(page) ?? 0
      failures.set(page, left - 1)
      if (left > 0) return httpResponse({ status: 503 })
      // PostgreSQL stores no NUL, which a page may hold.
      return httpResponse({ body: page > LAST ? [] : [`${page}\u0000`] })
    },
  })
  const run = async (node: Partial<NodeSpec> = {}) => {
    calls = []
    const pages: NodeSpec = {
      id: 'pages',
      type: 'api_request',
      config: { url: 'https://x.test/things', paginate: { page: {} } },
      retry: { max_attempts: 2, initial_interval: '10ms' },
      ...node,
    }
    const outputs = {
      count: '{{ nodes.pages.output.items | size }}',
      pages: '{{ nodes.pages.output.pages }}',
    }
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [pages], edges: [], outputs }, {})
    return untilRun(suite.db, id)
  }
  const row = (run_id: string) => suite.db.system('run_nodes').where({ run_id, node_id: 'pages' }).first()
  beforeEach(() => {
    failures = new Map()
    delay = 0
  })

  it('retry each page alone: each has all attempts, and none that was read is read again', async () => {
    failures = new Map([
      [2, 1],
      [3, 1],
      [5, 1],
    ])
    const { id, outputs } = await run()
    assert.deepEqual(outputs, { count: LAST, pages: LAST + 1 })
    assert.deepEqual(calls, [1, 2, 2, 3, 3, 4, 5, 5, 6, 7])
    const { progress, attempt } = await row(id)
    assert.deepEqual([progress, attempt], [null, 4])
  })

  it('fail with the error of the page that has used up its attempts', async () => {
    failures = new Map([
      [2, 1],
      [4, 9],
    ])
    const { id, status, error } = await run()
    assert.deepEqual([status, error?.code], ['failed', 'unexpected_status'])
    assert.deepEqual(calls, [1, 2, 2, 3, 4, 4])
    assert.equal((await row(id)).progress, null)
  })

  it('go on in another attempt if the timeout, which is that of one call, ends between pages', async () => {
    delay = 400
    const { id, outputs } = await run({ timeout: '1s', retry: { max_attempts: 1 } })
    assert.deepEqual(outputs, { count: LAST, pages: LAST + 1 })
    const again = calls.length - new Set(calls).size
    assert.ok(again > 0 && again < LAST, `${calls}: only pages that were cut off are read again`)
    assert.equal((await row(id)).attempt, 1)
  })
})
