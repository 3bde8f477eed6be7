import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { createActivities } from '../../activities/index.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { resumeRun } from '../../db/runs/moves/starts.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { each, edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { historyOf, queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
const call = {
  id: 'call',
  type: 'api_request',
  config: { method: 'POST', url: 'https://example.com/{{ item }}', headers: {} },
}
const save = (name: string) => ({
  id: 'save',
  type: 'crm_manager',
  config: { operation: 'create', entity: 'companies', fields: { name } },
})
const inputs = { items: { type: 'array' as const } }

describe('loops', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let open = 0
  let most = 0
  let round = 0
  let urls: string[] = []
  let answer: (url: string) => Promise<void>
  type Advance = ReturnType<typeof createActivities>['advance']
  let around: (advance: Advance) => Advance = (advance) => advance

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, {
      http: async ({ url }) => {
        const of = round
        open += 1
        most = Math.max(most, open)
        urls.push(url)
        try {
          await answer(url)
        } finally {
          // A cancelled call of another test may end now.
          if (of === round) open -= 1
        }
        return httpResponse({ body: { url } })
      },
      advance: (advance) => (input) => around(advance)(input),
    })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })
  beforeEach(() => {
    ;[open, most, urls] = [0, 0, []]
    round += 1
    answer = async () => {}
    around = (advance) => advance
  })
  const count = async (table: string, where: object) =>
    Number((await db.system(table).where(where).count())[0]!.count)
  function hold() {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    return { held, release: () => release() }
  }

  it('write a record for each of 1,000 items, in a history of few events', async () => {
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ output: '{{ nodes.save.output.name }}' }), save('many {{ item }}')],
        edges: [edge('each', 'save', 'item')],
        inputs,
        outputs: { names: '{{ nodes.each.output.items | map: "output" }}' },
      },
      { items: numbers(1_000) },
    )
    const run = await untilRun(db, id, undefined, 100)
    assert.deepEqual(
      run.outputs?.names,
      numbers(1_000).map((item) => `many ${item}`),
    ) // in order
    assert.equal(await count('run_iterations', { run_id: id, status: 'completed' }), 1_000)
    // Records of one statement have the same.
    const { rows } = await db.system.raw<{ rows: { statements: number }[] }>(
      `select count(distinct (xmin::text, cmin::text)) as statements from companies
       where created_by ->> 'id' = ?`,
      [id],
    )
    assert.ok(rows[0]!.statements < 200, `${rows[0]!.statements} statements`)
    const events = await historyOf(worker.client, `run:${id}`)
    // Some 50 events, but more segments on a busy machine, where each does less within its time limit.
    assert.ok(events.length < 1_000, `${events.length} events`)
  })

  it('undo what an item wrote that fails, and nothing of the others', async () => {
    const taken = randomUUID()
    const mark = (id: string, config: Record<string, unknown>) => ({ ...save('unused'), id, config })
    const create = (name: string, more = {}) => ({
      operation: 'create',
      entity: 'companies',
      fields: { name, ...more },
    })
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [
          each({ on_item_error: 'continue' }),
          mark('before', create('before {{ item }} {{ run.id }}')),
          // Two of the items have the same external_id.
          mark(
            'save',
            create('after {{ item }} {{ run.id }}', { external_id: `${taken} {{ item | modulo: 58 }}` }),
          ),
        ],
        edges: [edge('each', 'before', 'item'), edge('before', 'save')],
        inputs,
        outputs: { failed: '{{ nodes.each.output.failed }}' },
      },
      { items: numbers(60) },
    )
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { failed: 2 }])
    const names = await db.system('companies').where('name', 'like', `%${id}`).pluck('name')
    assert.equal(names.filter((name) => name.startsWith('before')).length, 60)
    assert.equal(new Set(names).size, 118)
    const events = await db.system('events').where({ cause: id, name: 'company.created' })
    assert.equal(events.length, 118)
  })

  it('find the item whose record only PostgreSQL refuses, and create each of the others once', async () => {
    await db.asOwner((client) =>
      client.query(`
        create function refuse() returns trigger language plpgsql as $$
          begin raise exception 'not this one' using errcode = 'check_violation'; end $$;
        create trigger refuse before insert on companies for each row when (new.name like 'refused 7 %')
          execute function refuse()`),
    )
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ on_item_error: 'continue' }), save('refused {{ item }} {{ run.id }}')],
        edges: [edge('each', 'save', 'item')],
        inputs,
        outputs: { items: '{{ nodes.each.output.items | where: "status", "failed" | map: "index" }}' },
      },
      { items: numbers(20) },
    )
    const run = await untilRun(db, id)
    await db.asOwner((client) => client.query('drop function refuse() cascade'))
    assert.deepEqual([run.status, run.outputs], ['completed', { items: [7] }])
    const names = await db.system('companies').where('name', 'like', `%${id}`).pluck('name')
    assert.deepEqual(
      names.sort(),
      numbers(20)
        .filter((item) => item !== 7)
        .map((item) => `refused ${item} ${id}`)
        .sort(),
    )
    assert.equal(await count('events', { cause: id, name: 'company.created' }), 19)
  })

  it('make no more calls at a time than `concurrency`, and have the results in order', async () => {
    // The first call ends late, the second one when a third one has begun.
    answer = async (url) => {
      if (url.endsWith('/0')) await until(() => urls.length >= 8)
      if (url.endsWith('/1')) await until(() => most === 3)
    }
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ concurrency: 3, output: '{{ nodes.call.output.body.url }}' }), call],
        edges: [edge('each', 'call', 'item')],
        inputs,
        outputs: { urls: '{{ nodes.each.output.items | map: "output" }}' },
      },
      { items: numbers(12) },
    )
    const run = await untilRun(db, id)
    assert.deepEqual(
      run.outputs?.urls,
      numbers(12).map((item) => `https://example.com/${item}`),
    )
    assert.equal(most, 3)
    assert.notEqual(urls.at(-1), 'https://example.com/0')
  })

  it('in loops read the items of both, and wait in their bodies', async () => {
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [
          each({ concurrency: 2 }),
          { id: 'inner', type: 'for_each', config: { items: '{{ item }}', concurrency: 2 } },
          { id: 'pause', type: 'delay', config: { for: '30ms' } },
          {
            ...call,
            config: { ...call.config, url: 'https://example.com/{{ nodes.each.output.index }}/{{ item }}' },
          },
        ],
        edges: [edge('each', 'inner', 'item'), edge('inner', 'pause', 'item'), edge('pause', 'call')],
        inputs,
        outputs: { rows: '{{ nodes.each.output.items }}' },
      },
      { items: [['a', 'b'], ['c']] },
    )
    const run = await untilRun(db, id)
    const rows = run.outputs!.rows as { output: { items: { output: { body: { url: string } } }[] } }[]
    assert.deepEqual(
      rows.map(({ output }) => output.items.map(({ output }) => output.body.url.slice(-3))),
      [['0/a', '0/b'], ['1/c']],
    )
    const keys = await db
      .system('run_nodes')
      .where({ run_id: id, node_id: 'call' })
      .orderBy('path')
      .pluck('path')
    assert.deepEqual(keys, ['each:0/inner:0', 'each:0/inner:1', 'each:1/inner:0'])
  })

  it('stop at an item that fails, cancel the calls in progress, and fail the run', async () => {
    let cancelled = false
    const { held, release } = hold()
    answer = async (url) => {
      if (url.endsWith('/1')) throw new NodeError('connection_refused', 'Nobody there.')
      if (url.endsWith('/0')) await held
    }
    around = (advance) => async (input) => {
      const result = await advance(input)
      cancelled ||= result.commands.some(({ type }) => type === 'cancel')
      return result
    }
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ concurrency: 2 }), call, { id: 'then', type: 'delay', config: { for: '100ms' } }],
        edges: [edge('each', 'call', 'item'), edge('each', 'then', 'error')],
        inputs,
        outputs: { error: '{{ nodes.each.error.details.error }}' },
      },
      { items: numbers(5) },
    )
    const run = await untilRun(db, id)
    assert.equal((run.outputs!.error as { code: string }).code, 'connection_refused')
    assert.ok(cancelled)
    release()
    assert.deepEqual(
      await db.system('run_iterations').where({ run_id: id }).orderBy('index').pluck('status'),
      ['cancelled', 'failed'],
    )
  })

  it('go on after items that fail if they are told to', async () => {
    answer = async (url) => {
      if (/[13]$/.test(url)) throw new NodeError('connection_refused', 'Nobody there.')
    }
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ concurrency: 2, on_item_error: 'continue' }), call],
        edges: [edge('each', 'call', 'item')],
        inputs,
        outputs: { all: '{{ nodes.each.output }}' },
      },
      { items: numbers(5) },
    )
    const { all } = (await untilRun(db, id)).outputs as {
      all: { succeeded: number; items: { error?: { code: string; node_id: string } }[] }
    }
    assert.equal(all.succeeded, 3)
    assert.deepEqual(
      all.items.map(({ error }) => error?.code),
      [undefined, 'connection_refused', undefined, 'connection_refused', undefined],
    )
  })

  it('wait for a child of each item', async () => {
    await queueRun(db, organizationId, {
      name: 'Doubled',
      nodes: [{ id: 'pause', type: 'delay', config: { for: '20ms' } }],
      inputs: { value: { type: 'number' } },
      outputs: { twice: '{{ inputs.value | times: 2 }}' },
    })
    const child = {
      id: 'child',
      type: 'run_workflow',
      config: { workflow: 'Doubled', inputs: { value: '{{ item }}' } },
    }
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ concurrency: 2, output: '{{ nodes.child.output.outputs.twice }}' }), child],
        edges: [edge('each', 'child', 'item')],
        inputs,
        outputs: { values: '{{ nodes.each.output.items | map: "output" }}' },
      },
      { items: [1, 2, 3] },
    )
    assert.deepEqual((await untilRun(db, id)).outputs, { values: [2, 4, 6] })
  })

  it('are cancelled in the middle', async () => {
    const { held, release } = hold()
    answer = () => held
    const id = await queueRun(
      db,
      organizationId,
      { nodes: [each({ concurrency: 2 }), call], edges: [edge('each', 'call', 'item')], inputs },
      { items: numbers(5) },
    )
    await until(() => open === 2)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal((await untilRun(db, id)).status, 'cancelled')
    const rows = await db.system('run_nodes').where({ run_id: id }).orderBy('path').select('path', 'status')
    assert.deepEqual(
      rows.map(({ path, status }) => [path, status]),
      [
        ['', 'cancelled'],
        ['each:0', 'cancelled'],
        ['each:1', 'cancelled'],
      ],
    )
    assert.equal(await count('run_iterations', { run_id: id, status: 'cancelled' }), 2)
    assert.equal(await count('run_loops', { run_id: id, open: true }), 0)
    release()
  })

  it('go on where they were if Temporal has lost them', async () => {
    const { held, release } = hold()
    answer = (url) => (url.endsWith('/2') ? held : Promise.resolve())
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ concurrency: 2, output: '{{ item }}' }), save('lost {{ run.id }} {{ item }}'), call],
        edges: [edge('each', 'save', 'item'), edge('save', 'call')],
        inputs,
        outputs: { values: '{{ nodes.each.output.items | map: "output" }}' },
      },
      { items: numbers(4) },
    )
    await until(async () => (await count('run_iterations', { run_id: id, status: 'completed' })) === 3)
    await worker.client.workflow.getHandle(`run:${id}`).terminate()
    const { temporal_run_id } = await db.system('runs').where({ id }).first('temporal_run_id')
    answer = async () => {}
    await db.tenant(organizationId, testActor, (tx) => resumeRun(tx, id, temporal_run_id))
    release()
    assert.deepEqual((await untilRun(db, id)).outputs, { values: numbers(4) })
    assert.equal(
      Number((await db.system('companies').whereLike('name', `lost ${id} %`).count())[0]!.count),
      4,
    )
  })

  it('are reset into the middle, and find what their items created', async () => {
    const name = 'reset {{ run.id }} {{ item }}'
    let broken = true
    answer = async (url) => {
      if (broken && url.endsWith('/2')) throw new NodeError('connection_refused', 'Nobody there.')
    }
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ output: '{{ item }}' }), save(name), call, { ...save(`after ${name}`), id: 'then' }],
        edges: [edge('each', 'save', 'item'), edge('save', 'call'), edge('call', 'then')],
        inputs,
        outputs: {
          values: '{{ nodes.each.output.items | map: "output" }}',
          failed: '{{ nodes.each.output.failed }}',
        },
      },
      { items: numbers(4) },
    )
    assert.equal((await untilRun(db, id)).error?.code, 'item_failed')
    const handle = worker.client.workflow.getHandle(`run:${id}`)
    await assert.rejects(handle.result())
    const tasks = ((await handle.fetchHistory()).events ?? []).filter(
      (event) => event.workflowTaskCompletedEventAttributes,
    )
    broken = false
    // The second task began when the call of the first item had ended.
    await worker.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: handle.workflowId, runId: (await handle.describe()).runId },
      reason: 'test',
      requestId: randomUUID(),
      workflowTaskFinishEventId: tasks[1]!.eventId!,
    })
    await until(async () => (await untilRun(db, id)).status === 'completed')
    assert.deepEqual((await untilRun(db, id)).outputs, { values: numbers(4), failed: 0 })
    const names = await db.system('companies').whereLike('name', `%reset ${id} %`).pluck('name')
    assert.equal(names.length, 8)
    assert.equal(new Set(names).size, 8)
  })

  it('go on in another worker', async () => {
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [
          each({ concurrency: 2, output: '{{ item }}' }),
          { id: 'pause', type: 'delay', config: { for: '300ms' } },
          save('moved {{ run.id }} {{ item }}'),
        ],
        edges: [edge('each', 'pause', 'item'), edge('pause', 'save')],
        inputs,
        outputs: { values: '{{ nodes.each.output.items | map: "output" }}' },
      },
      { items: numbers(6) },
    )
    await until(async () => (await count('run_iterations', { run_id: id, status: 'completed' })) >= 2)
    const { taskQueue } = worker
    await worker.stop()
    worker = await startWorker(db, {}, taskQueue)
    assert.deepEqual((await untilRun(db, id)).outputs, { values: numbers(6) })
    assert.equal(
      Number((await db.system('companies').whereLike('name', `moved ${id} %`).count())[0]!.count),
      6,
    )
  })
})
