import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { Client, Connection } from '@temporalio/client'
import { Worker } from '@temporalio/worker'
import { scheduleIdOf } from '../../workflows/bundle/protocol.ts'
import { testBundle } from '../support/bundle.ts'
import { saveHistory } from '../support/histories.ts'
import { problemsIn } from '../support/logs.ts'
import { type HeldService, shapeSpecs, startHeldService } from '../support/shapes.ts'
import { startStack, type TestStack } from '../support/stack.ts'
import { clientOf } from '../support/stack-client.ts'
import { until } from '../support/until.ts'
import '../support/worker.ts'

// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = any

/**
 * All shapes run on one stack. Each run continues to its middle, then worker and api are killed with kill -9, and every
 * run continues to its end. Each test examines one shape.
 */
describe('a workflow whose worker and api are killed in the middle', () => {
  let stack: TestStack
  let service: HeldService
  let api: (method: string, path: string, body?: unknown) => Promise<Json>
  let temporal: Client
  let connection: Connection
  let killedAt: number
  const workflows: Record<string, string> = {}
  const runs: Record<string, string> = {}

  const start = async (name: string, inputs = {}): Promise<string> =>
    (await api('POST', `/workflows/${workflows[name]}/run`, { inputs, confirm: true })).run_id
  const show = (id: string) => api('GET', `/runs/${id}`)
  const runsOf = async (name: string): Promise<Json[]> =>
    (await api('GET', `/runs?workflow_id=${workflows[name]}&limit=200`)).data
  const statusOf = async (id: string) => (await show(id)).status
  const untilStatus = (id: string, status: string) =>
    until(async () => (await statusOf(id)) === status, `${id} ${status}`)
  /** Waits until the run waits for the signal `go`. */
  const untilHeld = (id: string) =>
    until(async () => (await show(id)).waits.find(({ name }: Json) => name === 'go'), `the wait of ${id}`)
  const signal = (id: string) => api('POST', `/runs/${id}/signal`, { name: 'go' })
  const asked = (id: string, title: string) =>
    until(
      async () => (await show(id)).waits.find(({ approval }: Json) => approval?.title === title),
      `the question ${title}`,
    )
  const contact = (fields: Record<string, string>) => api('POST', '/objects/contacts', fields)
  /** The objects that a run created, by name. */
  async function contactsOf(name: string): Promise<string[]> {
    const { data } = await api('GET', `/objects/contacts?last_name=${name}&limit=200`)
    return data.map(({ first_name }: Json) => first_name).sort()
  }
  /** Each call was made with one idempotency key of its run, once or several times. */
  function assertCalled(keys: Record<string, string>): void {
    for (const [path, key] of Object.entries(keys)) {
      const made = service.calls.filter((call) => call.path === path)
      assert.ok(made.length > 0, `no call of ${path}`)
      assert.deepEqual([...new Set(made.map((call) => call.key))], [key])
    }
  }
  async function completed(id: string): Promise<Json> {
    const run = await show(id)
    assert.deepEqual([run.status, run.error], ['completed', null])
    return run
  }

  before(async () => {
    service = await startHeldService()
    stack = await startStack({ onSuite: true, env: { EGRESS_ALLOW: '127.0.0.0/8' } })
    const { v1 } = await clientOf(stack)
    api = async (method, path, body) => {
      const { status, body: answer } = await v1(method, path, body)
      assert.ok(status < 300, `${method} ${path}: ${status} ${JSON.stringify(answer)}`)
      return answer
    }
    connection = await Connection.connect({ address: stack.temporalAddress })
    temporal = new Client({ connection })
    for (const [name, spec] of Object.entries(shapeSpecs(service.url))) {
      const made = await api('POST', '/workflows', { spec: `name: ${name}\n${spec}` })
      workflows[name] = made.workflow_id
      if (spec.includes('trigger:')) await api('POST', `/workflows/${made.workflow_id}/activate`)
    }

    // The first half. At most ten active runs of an organization are certain to be admitted.
    for (const shape of ['failing', 'retry', 'bulk']) service.failing.add(shape)
    service.failing.add('again/2')
    service.passing.add('again')
    runs.retried = await start('retry')
    runs['failed in loop'] = await start('retry in loop')
    runs['failed before'] = await start('failing')
    runs.failing = await start('failing')
    const bulk = await Promise.all([1, 2, 3, 4].map((n) => start('bulk', { n })))
    await untilHeld(runs['failed before']!)
    await signal(runs['failed before']!)
    for (const id of [runs.retried, runs['failed in loop']!, ...bulk, runs['failed before']!])
      await untilStatus(id, 'failed')
    for (const shape of ['retry', 'bulk', 'again/2']) service.failing.delete(shape)
    const [handler] = await until(async () => {
      const started = await runsOf('on error')
      return started.length > 0 ? started : undefined
    }, 'the error workflow')
    runs['on error'] = handler.run_id
    await untilHeld(runs['on error']!)
    for (const shape of ['parallel', 'joins', 'loop', 'nested', 'child', 'approval'])
      runs[shape] = await start(shape)
    for (const shape of ['event wait', 'pause', 'stop']) runs[shape] = await start(shape)
    runs.timeout = await start('timeout')
    await until(async () => (await show(runs.timeout!)).nodes[1], 'the delay')
    runs.retry = (
      await api('POST', `/runs/${runs.retried}/retry`, { from_node: 'second', confirm: true })
    ).run_id
    runs['retry in loop'] = (
      await api('POST', `/runs/${runs['failed in loop']}/retry`, {
        from_node: 'call',
        items: ['each:2'],
        confirm: true,
      })
    ).run_id
    await contact({ first_name: 'chain-start', last_name: 'one' })
    const schedule = temporal.schedule.getHandle(scheduleIdOf(workflows.schedule!))
    await until(() => schedule.describe(), 'the schedule')
    await schedule.trigger()
    const currentSecond = () => Math.floor(Date.now() / 1_000)
    const triggeredIn = currentSecond()
    const open = [
      'parallel/a',
      'parallel/b',
      'parallel/c',
      'joins/slow',
      'loop/0',
      'loop/1',
      'loop/2',
      'nested/0a',
      'nested/0b',
      'nested/1c',
      'nested/1d',
      'child/call',
      'chain/one',
      'schedule/call',
      'retry/second',
      'pause/call',
      'stop/gate',
    ].sort()
    await until(() => `${service.held()}` === `${open}`, 'the middle').catch(() =>
      assert.deepEqual(service.held(), open),
    )
    const first = await asked(runs.approval!, 'first')
    await untilHeld(runs.failing!)
    await untilHeld(runs['retry in loop']!)
    await until(async () => (await show(runs['event wait']!)).waits[0], 'the wait')

    // Accepted, but most likely not executed before the kill.
    await api('POST', `/runs/${runs.pause}/pause`)
    await Promise.all([
      api('POST', `/runs/${runs.approval}/signal`, { approval_id: first.approval.id, decision: 'approved' }),
      api('POST', '/run-batches', {
        action: 'retry',
        filter: { workflow_id: workflows.bulk },
        confirm: true,
      }).then(({ batch_id }) => {
        runs.batch = batch_id
      }),
      contact({ first_name: 'awaited', email: 'awaited@example.com' }),
      contact({ first_name: 'chain-start', last_name: 'two' }),
      signal(runs['retry in loop']!),
    ])
    stack.kill('worker')
    stack.kill('api')
    killedAt = Date.now()
    // Temporal fires the schedule while there is no worker. Runs of a schedule are unique by their time, in seconds.
    await until(() => currentSecond() > triggeredIn, 'the next second')
    await schedule.trigger()
    service.release()

    await until(
      async () => (await fetch(`${stack.apiUrl}/readyz`)).ok,
      () => ({ api: stack.output().slice(-1_000), problems: problemsIn(stack.dataDir).slice(-5) }),
    )
    for (const name of ['failing', 'on error']) await signal(runs[name]!)
    const later = await until(
      async () => (await runsOf('on error')).find(({ run_id }) => run_id !== runs['on error']),
      'the second error workflow',
    )
    await untilHeld(later.run_id)
    await signal(later.run_id)
    const second = await asked(runs.approval!, 'second')
    await api('POST', `/runs/${runs.approval}/signal`, {
      approval_id: second.approval.id,
      decision: 'rejected',
    })
    await untilStatus(runs.pause!, 'paused')
    assert.deepEqual(await contactsOf(runs.pause!), ['before'])
    await api('POST', `/runs/${runs.pause}/resume`)
    await until(async () => {
      const { total } = await api('GET', '/runs?status=queued,running,paused&count=exact')
      const batch = await api('GET', `/run-batches/${runs.batch}`)
      const chained = await runsOf('chain second')
      const scheduled = await runsOf('schedule')
      const ended = total === 0 && batch.status === 'completed'
      return (ended && chained.length >= 2 && scheduled.length >= 2) || undefined
    }, 'all ends')
  })
  after(async () => {
    await connection?.close()
    await stack?.stop()
    service?.close()
  })

  it('runs its branches in parallel', async () => {
    const id = runs.parallel!
    const { outputs } = await completed(id)
    assert.deepEqual(outputs.paths, ['parallel/a', 'parallel/b', 'parallel/c'])
    assert.deepEqual(await contactsOf(id), ['a', 'b', 'c', 'start'])
    assertCalled({ 'parallel/a': `${id}:a`, 'parallel/b': `${id}:b`, 'parallel/c': `${id}:c` })
  })

  it('joins its branches: at the first one, or when all are there', async () => {
    const id = runs.joins!
    const { nodes } = await completed(id)
    const row = (node: string) => nodes.find(({ node_id }: Json) => node_id === node)
    assert.equal(row('dead').status, 'skipped')
    assert.ok(row('any').ended_at < row('slow').ended_at, 'any went on before the slow branch')
    assert.ok(row('all').started_at >= row('slow').ended_at, 'all waited for the slow branch')
    assert.deepEqual(await contactsOf(id), ['all', 'any'])
    assertCalled({ 'joins/slow': `${id}:slow` })
  })

  it('goes on with its loop, each item once and in order', async () => {
    const id = runs.loop!
    const { outputs } = await completed(id)
    const items = [0, 1, 2, 3, 4]
    assert.deepEqual(
      outputs.paths,
      items.map((n) => `loop/${n}`),
    )
    const each = items.flatMap((n) => [`after ${n}`, `before ${n}`])
    assert.deepEqual(await contactsOf(id), [...each, 'last'].sort())
    assertCalled(Object.fromEntries(items.map((n) => [`loop/${n}`, `${id}:each:${n}/call`])))
  })

  it('goes on with loops in loops', async () => {
    const id = runs.nested!
    const { outputs } = await completed(id)
    assert.deepEqual(outputs.paths, [
      ['nested/0a', 'nested/0b'],
      ['nested/1c', 'nested/1d'],
    ])
    assert.deepEqual(await contactsOf(id), ['before a', 'before b', 'before c', 'before d'])
    assertCalled({
      'nested/0a': `${id}:outer:0/inner:0/call`,
      'nested/1d': `${id}:outer:1/inner:1/call`,
    })
  })

  it('waits for its child', async () => {
    const id = runs.child!
    const { outputs } = await completed(id)
    assert.equal(outputs.twice, 42)
    assert.deepEqual(await contactsOf(id), ['after 42', 'before'])
    const children = await runsOf('child below')
    assert.deepEqual(
      children.map(({ run_id, status, parent_run_id }) => [run_id, status, parent_run_id]),
      [[outputs.child, 'completed', id]],
    )
    assert.deepEqual(await contactsOf(outputs.child), ['child after', 'child before'])
    assertCalled({ 'child/call': `${outputs.child}:call` })
  })

  it('keeps the decision that came right before, and takes the next one', async () => {
    const { outputs } = await completed(runs.approval!)
    assert.deepEqual(outputs.decisions, ['approved', 'rejected'])
    assert.deepEqual(await contactsOf(runs.approval!), ['after', 'before'])
  })

  it('sees the event that came right before', async () => {
    const { outputs } = await completed(runs['event wait']!)
    assert.equal(outputs.email, 'awaited@example.com')
    assert.deepEqual(await contactsOf(runs['event wait']!), ['after', 'before'])
  })

  it('is started by its schedule, also by a time that no worker saw', async () => {
    const scheduled = await runsOf('schedule')
    assert.equal(scheduled.length, 2)
    for (const { run_id, trigger } of scheduled) {
      assert.equal(trigger.type, 'schedule')
      await completed(run_id)
      assert.deepEqual(await contactsOf(run_id), ['after', 'scheduled'])
    }
    const keys = service.calls.filter(({ path }) => path === 'schedule/call').map(({ key }) => key)
    assert.deepEqual([...new Set(keys)].sort(), scheduled.map(({ run_id }) => `${run_id}:call`).sort())
  })

  it('passes events on in a chain, also one that came right before', async () => {
    for (const link of ['one', 'two']) assert.deepEqual(await contactsOf(link), ['chain-end', 'chain-start'])
    for (const name of ['chain first', 'chain second']) {
      const links = await runsOf(name)
      assert.deepEqual(
        links.map(({ status }) => status),
        ['completed', 'completed'],
        name,
      )
    }
  })

  it('starts its error workflow once, which goes on after a kill as well', async () => {
    const handlers = await runsOf('on error')
    const started = []
    for (const name of ['failing', 'failed before']) {
      const id = runs[name]!
      const run = await show(id)
      assert.deepEqual([run.status, run.error.node_id], ['failed', 'call'])
      started.push([run.error.details.error_workflow.run_id, 'completed'])
      assert.deepEqual(await contactsOf(id), ['before', 'failed at call', 'handled'])
    }
    assert.deepEqual(handlers.map(({ run_id, status }) => [run_id, status]).sort(), started.sort())
    assert.ok(started.some(([id]) => id === runs['on error']))
  })

  it('goes on with a retry from a node, with the outputs before it', async () => {
    const [retried, retry] = [await show(runs.retried!), await completed(runs.retry!)]
    assert.equal(retried.status, 'failed')
    assert.deepEqual(retry.retry, { run_id: runs.retried, from_node: 'second' })
    assert.equal((await contactsOf(runs.retried!)).length, 1)
    assert.deepEqual(await contactsOf(runs.retry!), ['after'])
    assertCalled({ 'retry/second': `${runs.retried}:second` })
  })

  it('goes on with a retry of an item of a loop, and repeats none that has completed', async () => {
    const [failed, id] = [runs['failed in loop']!, runs['retry in loop']!]
    const { status, error } = await show(failed)
    assert.deepEqual([status, error.code, error.details.index], ['failed', 'item_failed', 2])
    const { outputs, retry } = await completed(id)
    assert.deepEqual([retry.run_id, retry.from_node], [failed, 'call'])
    assert.deepEqual(
      outputs.paths,
      [0, 1, 2, 3, 4].map((n) => `again/${n}`),
    )
    assert.deepEqual(await contactsOf(failed), ['after 0', 'after 1', 'before 0', 'before 1', 'before 2'])
    assert.deepEqual(await contactsOf(id), ['after 2', 'after 3', 'after 4', 'before 3', 'before 4', 'last'])
    assertCalled(Object.fromEntries([0, 1, 2, 3, 4].map((n) => [`again/${n}`, `${failed}:each:${n}/call`])))
    for (const n of [0, 1]) assert.equal(service.calls.filter(({ path }) => path === `again/${n}`).length, 1)
  })

  it('is paused after the attempt in progress, and resumed', async () => {
    await completed(runs.pause!)
    assert.deepEqual(await contactsOf(runs.pause!), ['after', 'before'])
    assertCalled({ 'pause/call': `${runs.pause}:call` })
  })

  it('is retried in a batch, each run once', async () => {
    const batch = await api('GET', `/run-batches/${runs.batch}`)
    assert.deepEqual([batch.total, batch.done, batch.refused], [4, 4, 0])
    const all = await runsOf('bulk')
    const retries = all.filter(({ retry_of }) => retry_of !== null)
    assert.deepEqual(
      retries.map(({ status }) => status),
      Array(4).fill('completed'),
    )
    assert.equal(new Set(retries.map(({ retry_of }) => retry_of)).size, 4)
    for (const { run_id, retry_of } of retries) {
      const { n } = (await show(run_id)).inputs
      assert.deepEqual(
        [await contactsOf(retry_of), await contactsOf(run_id)],
        [[`before ${n}`], [`after ${n}`]],
      )
      assertCalled({ [`bulk/${n}`]: `${retry_of}:call` })
    }
  })

  it('is stopped by a node, which cancels the other branch', async () => {
    const { nodes, outputs } = await completed(runs.stop!)
    assert.deepEqual(outputs, { by: 'gate' })
    assert.equal(nodes.find(({ node_id }: Json) => node_id === 'long').status, 'cancelled')
    assert.deepEqual(await contactsOf(runs.stop!), ['start'])
  })

  it('fails at its timeout', async () => {
    const { status, error, nodes, ended_at } = await show(runs.timeout!)
    assert.deepEqual([status, error.code], ['failed', 'timeout'])
    assert.ok(Date.parse(ended_at) > killedAt)
    assert.deepEqual(
      nodes.map((node: Json) => `${node.node_id} ${node.status}`),
      ['start completed', 'long cancelled'],
    )
    assert.deepEqual(await contactsOf(runs.timeout!), ['start'])
  })

  /** Stores a history of each shape for `test/workflows/replay.test.ts`. Stored ones are never overwritten. */
  async function record(): Promise<void> {
    const ids = new Map(
      Object.entries(runs).filter(([name]) => !['batch', 'retried', 'failed in loop'].includes(name)),
    )
    for (const name of ['schedule', 'chain first', 'chain second', 'on error', 'bulk'])
      ids.set(name, (await runsOf(name))[0].run_id)
    for (const [name, id] of ids) {
      const file = new URL(`../fixtures/histories/killed-${name.replaceAll(' ', '-')}.binpb`, import.meta.url)
      if (!existsSync(file)) saveHistory(file, await temporal.workflow.getHandle(`run:${id}`).fetchHistory())
    }
  }

  it('replays its history', async () => {
    const workflowBundle = { codePath: await testBundle() }
    const histories = temporal.workflow
      .list({ query: `WorkflowType = 'run' and TaskQueue = '${stack.taskQueue}'` })
      .intoHistories()
    let replayed = 0
    for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
      assert.equal(error, undefined, workflowId)
      replayed += 1
    }
    assert.ok(replayed >= 30, `${replayed} histories`)
    if (process.env.RECORD_HISTORIES) await record()
  })
})
