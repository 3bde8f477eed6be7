import assert from 'node:assert/strict'
import type { HttpClient } from '../../activities/http/client.ts'
import { createRetry, prepareRetryOf, type RetryOptions } from '../../db/runs/retry.ts'
import { lockWorkflow, updateWorkflow } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import type { Definition, NodeSpec } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { edge, set } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const call = (id: string, url = `https://example.com/${id}`): NodeSpec => ({
  id,
  type: 'api_request',
  config: { method: 'POST', url },
})
const save: NodeSpec = {
  id: 'save',
  type: 'crm_manager',
  config: { operation: 'create', entity: 'contacts', fields: { first_name: '{{ inputs.name }}' } },
}

/** save → first → second → last, with a branch of its own beside `first`. */
const definition = {
  nodes: [
    save,
    call('first'),
    call('beside'),
    call('second'),
    set('last', '{{ nodes.first.output.body.n }}'),
  ],
  edges: [edge('save', 'first'), edge('save', 'beside'), edge('first', 'second'), edge('second', 'last')],
  inputs: { name: { type: 'string' as const } },
  outputs: { n: '{{ nodes.last.output.value }}', contact: '{{ nodes.save.output.id }}' },
}

describe('retries of runs', () => {
  let calls: { path: string; key: string }[] = []
  let broken = new Set<string>()
  const http: HttpClient['call'] = async (request) => {
    const path = new URL(request.url).pathname.slice(1)
    const key = request.headers?.['Idempotency-Key'] ?? ''
    calls.push({ path, key })
    // An earlier failure would cancel the other branch, and the retry would repeat its call.
    if (path === 'second' && broken.has(path)) await ended(key.slice(0, key.indexOf(':')), 'beside')
    return httpResponse({ status: broken.has(path) ? 400 : 200, body: { n: calls.length } })
  }
  const suite = withWorker({ http })
  beforeEach(() => {
    calls = []
    broken = new Set()
  })

  const retry = (id: string, options: Partial<RetryOptions> = {}) =>
    suite.db.tenant(suite.organizationId, testActor, async (tx) =>
      createRetry(tx, await prepareRetryOf(tx, id, { version: 'same', ...options }), 0),
    )
  const ended = (run_id: string, node_id: string) =>
    until(() => suite.db.system('run_nodes').where({ run_id, node_id, status: 'completed' }).first())
  const row = (id: string) => suite.db.system('runs').where({ id }).first()
  const contacts = (name: string) => suite.db.system('contacts').where({ first_name: name })
  /** A run whose node `second` has failed. */
  async function failedRun(name: string): Promise<string> {
    broken = new Set(['second'])
    const id = await queueRun(suite.db, suite.organizationId, definition, { name })
    assert.equal((await untilRun(suite.db, id)).error?.node_id, 'second')
    calls = []
    broken = new Set()
    return id
  }
  const paths = () => calls.map(({ path }) => path).sort()

  it('start with the node that failed, with the outputs before it and the same idempotency key', async () => {
    const id = await failedRun('Ada')
    const first = (await suite.db.system('run_nodes').where({ run_id: id, node_id: 'first' }).first()).output
    const retried = await retry(id)
    const run = await untilRun(suite.db, retried)
    assert.deepEqual([run.status, run.outputs?.n], ['completed', first.body.n])
    assert.deepEqual(calls, [{ path: 'second', key: `${id}:second` }])
    const { retry_of, retry: made } = await row(retried)
    assert.deepEqual([retry_of, made], [id, { run_id: id, from_node: 'second' }])
    assert.equal((await row(id)).status, 'failed')
    assert.equal((await contacts('Ada')).length, 1)
  })

  it('of a retry keep the idempotency keys of the first run', async () => {
    const id = await failedRun('Bea')
    broken = new Set(['second'])
    const second = await retry(id)
    assert.equal((await untilRun(suite.db, second)).status, 'failed')
    broken = new Set()
    const third = await retry(second)
    assert.equal((await untilRun(suite.db, third)).status, 'completed')
    assert.deepEqual(
      calls.map(({ key }) => key),
      Array(2).fill(`${id}:second`),
    )
    assert.equal((await row(third)).retry_of, id)
  })

  it('from the start run every node, and create no record a second time', async () => {
    const id = await failedRun('Cleo')
    const run = await untilRun(suite.db, await retry(id, { from_start: true }))
    assert.equal(run.status, 'completed')
    assert.deepEqual(paths(), ['beside', 'first', 'second'])
    assert.ok(calls.every(({ path, key }) => key === `${id}:${path}`))
    const [contact, ...others] = await contacts('Cleo')
    assert.deepEqual([others, run.outputs?.contact], [[], contact.id])
  })

  it('from a node run it, what comes after it, and what had not completed', async () => {
    const id = await failedRun('Dora')
    assert.equal((await untilRun(suite.db, await retry(id, { from_node: 'first' }))).status, 'completed')
    const rest = paths()
    // The run may have failed before the branch beside it had completed.
    assert.deepEqual(
      rest.filter((path) => path !== 'beside'),
      ['first', 'second'],
    )
  })

  it('are made once at a time, and not of a run of which one has completed', async () => {
    const id = await failedRun('Finn')
    const { workflow_id } = await row(id)
    const twice = await Promise.allSettled([retry(id), retry(id, { from_start: true })])
    const [made, ...others] = twice.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    assert.deepEqual(others, [])
    assert.equal((await untilRun(suite.db, made!)).status, 'completed')
    await assert.rejects(retry(id), new RegExp(`run ${made}, a retry of the same run, has completed`))
    assert.equal((await untilRun(suite.db, await retry(made!, { from_start: true }))).status, 'completed')
    assert.equal((await suite.db.system('runs').where({ workflow_id })).length, 3)
    assert.equal((await contacts('Finn')).length, 1)
  })

  it('on the newest version run what was repaired', async () => {
    const id = await failedRun('Eve')
    broken = new Set(['second'])
    const { workflow_id } = await row(id)
    await suite.db.tenant(suite.organizationId, testActor, async (tx) => {
      const before = await lockWorkflow(tx, workflow_id, undefined)
      const repaired: Definition = {
        ...before.definition,
        nodes: before.definition.nodes.map((node) =>
          node.id === 'second' ? call('second', 'https://example.com/repaired') : node,
        ),
      }
      const content = { spec: null, definition: repaired, program: compile(repaired) }
      await updateWorkflow(tx, before, { content })
    })
    const same = await untilRun(suite.db, await retry(id))
    assert.equal(same.status, 'failed')
    const latest = await untilRun(suite.db, await retry(id, { version: 'latest' }))
    assert.equal(latest.status, 'completed')
    assert.equal(calls.at(-1)?.path, 'repaired')
    assert.equal((await row(latest.id)).workflow_version, 2)
  })

  it('find the records of another retry that failed', async () => {
    const later = {
      nodes: [call('first'), save, call('third')],
      edges: [edge('first', 'save'), edge('save', 'third')],
    }
    broken = new Set(['first'])
    const inputs = { name: { type: 'string' as const } }
    const id = await queueRun(suite.db, suite.organizationId, { ...later, inputs }, { name: 'Gus' })
    assert.equal((await untilRun(suite.db, id)).error?.node_id, 'first')
    broken = new Set(['third'])
    assert.equal((await untilRun(suite.db, await retry(id))).error?.node_id, 'third')
    broken = new Set()
    assert.equal((await untilRun(suite.db, await retry(id))).status, 'completed')
    assert.equal((await contacts('Gus')).length, 1)
  })

  it('start a child that failed again', async () => {
    broken = new Set(['child'])
    const child = await queueRun(suite.db, suite.organizationId, { name: 'Child', nodes: [call('child')] })
    await untilRun(suite.db, child)
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [{ id: 'sub', type: 'run_workflow', config: { workflow: 'Child', wait: true } }],
    })
    assert.equal((await untilRun(suite.db, id)).error?.code, 'child_run_failed')
    broken = new Set()
    assert.equal((await untilRun(suite.db, await retry(id))).status, 'completed')
  })

  it('are refused with the reason', async () => {
    const id = await failedRun('Fay')
    await assert.rejects(retry(id, { from_node: 'nothing' }), /the version has no node nothing/)
    await assert.rejects(
      retry(id, { from_node: 'last' }),
      /the nodes before last must have completed, but second did not in this run: start with second/,
    )
    const open = await queueRun(suite.db, suite.organizationId, {
      nodes: [{ id: 'wait', type: 'delay', config: { for: '1h' } }],
    })
    await assert.rejects(retry(open), /only a run that has ended can be retried/)
  })
})
