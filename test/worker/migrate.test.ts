import assert from 'node:assert/strict'
import type { HttpClient } from '../../activities/http/client.ts'
import { AppError } from '../../db/model/errors.ts'
import { answerApproval } from '../../db/runs/approvals.ts'
import { createBatch, getBatch, previewBatch } from '../../db/runs/batches.ts'
import { migrateRun, type WantedVersion } from '../../db/runs/migrate.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { createRetry, prepareRetryOf } from '../../db/runs/retry.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { getRun } from '../../db/runs/views.ts'
import { getWorkflow, updateWorkflow } from '../../db/workflows/workflows.ts'
import { searchAttributes } from '../../worker/search-attributes.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import type { SegmentInput } from '../../workflows/bundle/protocol.ts'
import type { Obstacle } from '../../workflows/interpret/migrate.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { completeDefinition, type PartialDefinition } from '../support/definition.ts'
import { holdFor } from '../support/hold.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, delay, each, edge, set } from '../support/nodes.ts'
import { recordsOf } from '../support/records.ts'
import { until } from '../support/until.ts'
import { nodeStatuses, saveWorkflow, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const approve: NodeSpec = { id: 'ask', type: 'approval', config: { title: 'Go on?' } }

/** Open runs that are moved to another version of their workflow. */
describe('runs that are migrated', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let calls: { url: string; key: string }[]
  let answer: HttpClient['call']
  /** Resolves before a segment runs; tests hold segments by it. */
  let gate: (input: SegmentInput) => Promise<void>

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, {
      pollMs: 50,
      http: async (request, options) => {
        calls.push({ url: request.url, key: request.headers?.['Idempotency-Key'] ?? '' })
        return answer(request, options)
      },
      advance: (advance) => async (input) => {
        await gate(input)
        return advance(input)
      },
    })
  })
  beforeEach(() => {
    calls = []
    answer = async () => httpResponse({ body: {} })
    gate = async () => {}
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  const tenant = <T>(work: Parameters<typeof db.tenant<T>>[2]) => db.tenant(organizationId, testActor, work)
  const row = (id: string) => db.system('runs').where({ id }).first()
  const nodes = (id: string) => nodeStatuses(db, id)
  const asleep = (id: string) => until(async () => (await row(id)).sleeps_until !== null)
  const reached = (id: string, node: string, status: string) =>
    until(async () => (await nodes(id))[node] === status)

  /** Saves the next version. @returns its number. */
  async function save(workflowId: string, definition: PartialDefinition): Promise<number> {
    const complete = completeDefinition(definition)
    const content = { spec: null, definition: complete, program: compile(complete) }
    const saved = await tenant(async (tx) =>
      updateWorkflow(tx, await getWorkflow(tx, workflowId), { content }),
    )
    return saved.version
  }
  const queue = (workflowId: string, inputs = {}) =>
    tenant((tx) =>
      createRun(tx, {
        workflow: { id: workflowId, version: 1, name: 'Test' },
        trigger: { type: 'api' },
        inputs,
        chain: CHAIN_START,
      }),
    )
  /** Saves both versions, and queues a run of the first. */
  async function start(before: PartialDefinition, after: PartialDefinition, inputs = {}): Promise<string> {
    const { id } = await saveWorkflow(db, organizationId, before)
    await save(id, after)
    return queue(id, inputs)
  }
  const migrate = (id: string, version: WantedVersion = 'latest') =>
    tenant((tx) => migrateRun(tx, id, version))
  const refused = async (id: string, version: WantedVersion = 'latest'): Promise<AppError> => {
    const error = await migrate(id, version).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof AppError, 'it was migrated')
    return error
  }
  const obstacles = async (id: string) => {
    const { type, details } = await refused(id)
    assert.equal(type, 'conflict')
    return (details.obstacles as Obstacle[]).map(({ code, node_id }) => [code, node_id])
  }
  const decide = async (runId: string) => {
    const { id } = await db.system('run_waits').where({ run_id: runId, type: 'decision' }).first()
    await tenant((tx) =>
      answerApproval(
        tx,
        { run_id: runId, id },
        { decision: 'approved', comment: null },
        { type: 'key', id: null },
      ),
    )
    return id as string
  }

  it('keep an open approval and what is done; the rest, outputs included, is that of the new version', async () => {
    const id = await start(
      {
        nodes: [set('first', 1), approve, set('last', 'old')],
        edges: [edge('first', 'ask'), edge('ask', 'last', 'approved')],
      },
      {
        inputs: { tone: { type: 'string', default: 'kind' } },
        nodes: [
          set('first', 2),
          { ...approve, title: 'Renamed' },
          set('more'),
          set('last', '{{ inputs.tone }}'),
        ],
        edges: [edge('first', 'ask'), edge('ask', 'more', 'approved'), edge('more', 'last')],
        outputs: { first: '{{ nodes.first.output.value }}', last: '{{ nodes.last.output.value }}' },
        settings: { expected_within: '1h' },
      },
    )
    await reached(id, 'ask', 'waiting')
    const { id: approval } = await db.system('run_waits').where({ run_id: id }).first()
    const begun = Date.now()
    assert.equal(await migrate(id), 2)
    const run = await tenant((tx) => getRun(tx, id))
    assert.equal(run.workflow_version, 2)
    const [{ at, ...migration }] = run.migrations as [(typeof run.migrations)[number]]
    assert.deepEqual(migration, { from_version: 1, to_version: 2, by: testActor })
    assert.ok(Date.parse(at) >= begun && Date.parse(at) <= Date.now(), at)
    const { created_at, expected_by } = await row(id)
    assert.equal(expected_by - created_at, 3_600_000)
    const entry = await db.system('audit_log').where({ target_id: id }).first()
    assert.deepEqual(
      [entry.action, entry.actor_type, entry.details.from_version, entry.details.to_version],
      ['run.migrated', testActor.type, 1, 2],
    )
    assert.equal(await decide(id), approval)
    const ended = await untilRun(db, id)
    assert.deepEqual(ended.outputs, { first: 1, last: 'kind' })
    assert.deepEqual(await nodes(id), {
      first: 'completed',
      ask: 'completed',
      more: 'completed',
      last: 'completed',
    })
  })

  it('let the attempt of a call end as it began; its further attempts have the new config and the same key', async () => {
    const retried = (url: string) =>
      call('call', { config: { method: 'POST', url }, retry: { max_attempts: 3, initial_interval: '1s' } })
    let fail = () => {}
    answer = () =>
      new Promise((_, reject) => {
        fail = () => reject(new NodeError('unavailable', 'Busy.', { retryable: true }))
      })
    const id = await start(
      { nodes: [retried('https://old.example/'), set('old')], edges: [edge('call', 'old')] },
      { nodes: [retried('https://new.example/'), set('new')], edges: [edge('call', 'new')] },
    )
    await until(() => calls.length === 1)
    await migrate(id)
    answer = async () => httpResponse({ body: {} })
    fail()
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(
      calls.map(({ url }) => url),
      ['https://old.example/', 'https://new.example/'],
    )
    assert.deepEqual(new Set(calls.map(({ key }) => key)), new Set([`${id}:call`]))
    assert.deepEqual(await nodes(id), { call: 'completed', new: 'completed' })
  })

  it('record a call that ended after the migration once, and go on by the new edges', async () => {
    let release = () => {}
    answer = () =>
      new Promise((resolve) => {
        release = () => resolve(httpResponse({ body: {} }))
      })
    const id = await start(
      { nodes: [call('call'), set('old')], edges: [edge('call', 'old')] },
      { nodes: [call('call'), call('next')], edges: [edge('call', 'next')] },
    )
    await until(() => calls.length === 1)
    await migrate(id)
    await until(async () => (await row(id)).workflow_command === null)
    answer = async () => httpResponse({ body: {} })
    release()
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(
      calls.map(({ key }) => key),
      [`${id}:call`, `${id}:next`],
    )
  })

  it('keep the list and the done items of a loop; its other items have the new configs', async () => {
    const looped = (value: string, url: string): PartialDefinition => ({
      inputs: { items: { type: 'array' } },
      nodes: [
        each({ output: '{{ nodes.set.output.value }}' }),
        call('call', { config: { url } }),
        set('set', value),
      ],
      edges: [edge('each', 'call', 'item'), edge('call', 'set')],
      outputs: { items: '{{ nodes.each.output.items }}' },
    })
    let release = () => {}
    answer = () =>
      calls.length === 1
        ? Promise.resolve(httpResponse({ body: {} }))
        : new Promise((resolve) => {
            release = () => resolve(httpResponse({ body: {} }))
          })
    const id = await start(
      looped('old {{ item }}', 'https://old.example/'),
      looped('new {{ item }}', 'https://new.example/'),
      {
        items: ['a', 'b', 'c'],
      },
    )
    await until(() => calls.length === 2)
    await migrate(id)
    answer = async () => httpResponse({ body: {} })
    release()
    const { outputs } = await untilRun(db, id)
    assert.deepEqual(
      (outputs!.items as { output: string }[]).map(({ output }) => output),
      ['old a', 'new b', 'new c'],
    )
    assert.deepEqual(
      calls.map(({ url }) => url),
      ['https://old.example/', 'https://old.example/', 'https://new.example/'],
    )
  })

  it('refuse a loop in progress whose list or body is changed', async () => {
    const loop = (items: string, ...more: string[]): PartialDefinition => ({
      inputs: { items: { type: 'array' }, others: { type: 'array', default: [] } },
      nodes: [each({ items }), delay('wait', '1h'), ...more.map((id) => set(id))],
      edges: [edge('each', 'wait', 'item'), ...more.map((id) => edge('wait', id))],
    })
    const id = await start(loop('{{ inputs.items }}', 'old'), loop('{{ inputs.others }}', 'new'), {
      items: [1, 2],
    })
    await asleep(id)
    assert.deepEqual(await obstacles(id), [
      ['loop_items_changed', 'each'],
      ['loop_body_changed', 'wait'],
      ['loop_body_changed', 'old'],
      ['loop_body_changed', 'new'],
    ])
    assert.equal((await row(id)).workflow_version, 1)
  })

  it('go on with the new version after a pause: also what had been next is replaced', async () => {
    const segments = hold(({ segment }) => segment === 1)
    const id = await start(
      { nodes: [delay('wait', '10ms'), set('old')], edges: [edge('wait', 'old')] },
      { nodes: [delay('wait', '10ms'), set('new')], edges: [edge('wait', 'new')] },
    )
    await segments.reached
    await tenant((tx) => pauseRun(tx, id))
    segments.release()
    await untilRun(db, id, ['paused'])
    assert.deepEqual(await nodes(id), { wait: 'completed' })
    await migrate(id)
    assert.equal((await row(id)).status, 'paused')
    await tenant((tx) => unpauseRun(tx, id))
    await untilRun(db, id)
    assert.deepEqual(await nodes(id), { wait: 'completed', new: 'completed' })
  })

  it('that are queued start with the new version and its limits', async () => {
    const { id: workflowId } = await saveWorkflow(db, organizationId, {
      nodes: [delay('wait', '1h')],
      settings: { concurrency: 1 },
    })
    const first = await queue(workflowId)
    await asleep(first)
    const id = await queue(workflowId)
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.equal((await row(id)).status, 'queued')
    await save(workflowId, { nodes: [set('new')], settings: { concurrency: 2 } })
    await migrate(id)
    assert.equal((await row(id)).starts_with, 'new')
    await untilRun(db, id)
    assert.deepEqual(await nodes(id), { new: 'completed' })
    assert.equal((await worker.client.workflow.getHandle(`run:${id}`).describe()).memo?.workflow_version, 2)
  })

  it('start at once a join that had waited for a branch which no longer exists', async () => {
    const both = [edge('first', 'ask'), edge('first', 'join')]
    const id = await start(
      { nodes: [set('first'), approve, set('join')], edges: [...both, edge('ask', 'join', 'approved')] },
      { nodes: [set('first'), approve, set('join')], edges: both },
    )
    await reached(id, 'ask', 'waiting')
    assert.equal((await nodes(id)).join, undefined)
    await migrate(id)
    await reached(id, 'join', 'completed')
    assert.equal((await nodes(id)).ask, 'waiting')
  })

  it('skip added nodes that they have passed, and run those that lead to nodes still to come', async () => {
    const before = [set('first'), approve, set('last')]
    const id = await start(
      { nodes: before, edges: [edge('first', 'ask'), edge('ask', 'last', 'approved')] },
      {
        nodes: [...before, set('between'), set('beside'), set('below'), set('parallel')],
        edges: [
          edge('first', 'between'),
          edge('between', 'ask'),
          edge('ask', 'last', 'approved'),
          edge('first', 'beside'),
          edge('beside', 'below'),
          edge('first', 'parallel'),
          edge('parallel', 'last'),
        ],
      },
    )
    await reached(id, 'ask', 'waiting')
    await migrate(id)
    await reached(id, 'parallel', 'completed')
    assert.deepEqual(await nodes(id), {
      first: 'completed',
      ask: 'waiting',
      between: 'skipped',
      beside: 'skipped',
      below: 'skipped',
      parallel: 'completed',
    })
    await decide(id)
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.equal((await nodes(id)).last, 'completed')
  })

  it('refuse with all that stands against it, and go on as they were', async () => {
    const id = await start(
      {
        inputs: { size: { type: 'number' } },
        nodes: [
          set('gone'),
          set('changed'),
          set('moved'),
          approve,
          { ...call('call'), retry: { max_attempts: 1 } },
        ],
        edges: [
          edge('gone', 'changed'),
          edge('changed', 'moved'),
          edge('moved', 'ask'),
          edge('moved', 'call'),
        ],
      },
      {
        inputs: { size: { type: 'string' } },
        nodes: [
          { ...each({ items: [1] }) },
          set('moved'),
          {
            id: 'changed',
            type: 'condition',
            config: { conditions: [{ left: 1, operator: 'eq', right: 1 }] },
          },
          { id: 'ask', type: 'delay', config: { for: '1h' } },
          call('call'),
        ],
        edges: [
          edge('each', 'moved', 'item'),
          edge('each', 'changed', 'done'),
          edge('changed', 'ask', 'true'),
          edge('changed', 'call', 'false'),
        ],
      },
      { size: 3 },
    )
    answer = () => new Promise(() => {})
    await reached(id, 'ask', 'waiting')
    const error = await refused(id)
    const found = error.details.obstacles as Obstacle[]
    assert.deepEqual(
      found.map(({ code, node_id }) => [code, node_id]),
      [
        ['input_refused', null],
        ['node_missing', 'gone'],
        ['node_type_changed', 'changed'],
        ['node_moved', 'moved'],
        ['node_type_changed', 'ask'],
      ],
    )
    for (const { message, hint } of found) assert.ok(message.length > 10 && hint.length > 10)
    for (const part of ['size', 'gone', 'changed', 'ask']) assert.match(error.message, new RegExp(part))
    const { workflow_version, migrations, workflow_command } = await row(id)
    assert.deepEqual([workflow_version, migrations, workflow_command], [1, null, null])
  })

  /** Holds the segments for which `matches`, until `release`. `reached` resolves with the first of them. */
  function hold(matches: (input: SegmentInput) => boolean) {
    const held = holdFor(matches)
    gate = held.pass
    return held
  }

  it('run a segment that was held during the migration with the new version', async () => {
    const segments = hold(({ segment }) => segment === 1)
    const id = await start(
      { nodes: [delay('wait', '10ms'), set('old')], edges: [edge('wait', 'old')] },
      { nodes: [delay('wait', '10ms'), set('new')], edges: [edge('wait', 'new')] },
    )
    await segments.reached
    await migrate(id)
    segments.release()
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(await nodes(id), { wait: 'completed', new: 'completed' })
  })

  it('wait for a segment in progress, and are judged by what it has done', async () => {
    const { id: contact } = await recordsOf(db, organizationId).create('contacts', { first_name: 'Ada' })
    const update = (id: string): NodeSpec => ({
      id,
      type: 'crm_manager',
      config: { operation: 'update', entity: 'contacts', id: contact, fields: { first_name: id } },
    })
    const lock = await db.system.transaction()
    await lock.raw('select from contacts where id = ? for update', [contact])
    const id = await start(
      { nodes: [update('grace'), delay('wait', '1h')], edges: [edge('grace', 'wait')] },
      { nodes: [delay('wait', '1h')] },
    )
    const blocked = async () => {
      const { rows } = await db.system.raw(
        `select count(distinct l.pid) as count from pg_locks l join pg_stat_activity a on a.pid = l.pid
         where not l.granted and a.datname = current_database()`,
      )
      return Number(rows[0].count)
    }
    let migration: Promise<AppError>
    try {
      await until(async () => (await blocked()) === 1)
      migration = refused(id)
      await until(async () => (await blocked()) === 2)
    } finally {
      await lock.commit()
    }
    assert.deepEqual(
      ((await migration).details.obstacles as Obstacle[]).map(({ code, node_id }) => [code, node_id]),
      [['node_missing', 'grace']],
    )
    await asleep(id)
    assert.deepEqual(await nodes(id), { grace: 'completed', wait: 'waiting' })
  })

  it('have the time limit of the new version, which may be longer, shorter or none', async () => {
    const limited = (timeout: string | undefined, time: string): PartialDefinition => ({
      nodes: [delay('wait', time)],
      settings: timeout === undefined ? {} : { timeout },
    })
    const longer = await start(limited('1s', '2s'), limited('1h', '2s'))
    const none = await start(limited('1s', '2s'), limited(undefined, '2s'))
    const shorter = await start(limited('1h', '1h'), limited('2s', '1h'))
    const first = await start(limited(undefined, '1h'), limited('2s', '1h'))
    for (const id of [longer, none, shorter, first]) {
      await asleep(id)
      await migrate(id)
    }
    for (const id of [longer, none]) assert.equal((await untilRun(db, id)).status, 'completed')
    for (const id of [shorter, first]) assert.equal((await untilRun(db, id)).error?.code, 'timeout')
  })

  it('show the new version in Temporal', async () => {
    const id = await start({ nodes: [approve] }, { nodes: [approve], outputs: { a: 1 } })
    await reached(id, 'ask', 'waiting')
    const memo = async () => (await worker.client.workflow.getHandle(`run:${id}`).describe()).memo
    assert.equal((await memo())?.workflow_version, 1)
    await migrate(id)
    await until(async () => (await memo())?.workflow_version === 2)
    const { answer } = await db
      .system('run_segments')
      .where({ run_id: id })
      .orderBy('segment', 'desc')
      .first()
    assert.match(answer.details, /migrated to version 2/)
    assert.equal((await memo())?.run_id, id)
  })

  it('are found as late in Temporal by the expectation of the new version', async () => {
    const within = (expected_within?: string) => ({
      nodes: [approve],
      settings: expected_within === undefined ? {} : { expected_within },
    })
    const expectedBy = async (id: string) => {
      const { typedSearchAttributes } = await worker.client.workflow.getHandle(`run:${id}`).describe()
      return typedSearchAttributes.get(searchAttributes.expectedBy)?.getTime()
    }
    const [longer, none] = [await start(within('1h'), within('2h')), await start(within('1h'), within())]
    for (const id of [longer, none]) {
      await reached(id, 'ask', 'waiting')
      const created: Date = (await row(id)).created_at
      assert.equal(await expectedBy(id), created.getTime() + 3_600_000)
      await migrate(id)
    }
    const { created_at } = await row(longer)
    await until(async () => (await expectedBy(longer)) === created_at.getTime() + 7_200_000)
    await until(async () => (await expectedBy(none)) === undefined)
  })

  it('are retried with the version that they had last', async () => {
    const id = await start(
      { nodes: [approve, set('old')], edges: [edge('ask', 'old', 'approved')] },
      { nodes: [approve, call('call')], edges: [edge('ask', 'call', 'approved')] },
    )
    answer = async () => {
      throw new NodeError('refused', 'No.')
    }
    await reached(id, 'ask', 'waiting')
    await migrate(id)
    await decide(id)
    assert.equal((await untilRun(db, id)).status, 'failed')
    assert.match((await refused(id)).message, /the run is failed: only an open run can be migrated/)
    answer = async () => httpResponse({ body: {} })
    const again = await tenant(async (tx) => {
      const prepared = await prepareRetryOf(tx, id, { version: 'same' })
      assert.equal(prepared.workflow.version, 2)
      return createRetry(tx, prepared, 0)
    })
    assert.equal((await untilRun(db, again)).status, 'completed')
    assert.equal((await row(again)).migrations, null)
  })

  it('many at once, in a batch; what is refused stays, with its reason', async () => {
    const { id: workflow_id } = await saveWorkflow(db, organizationId, {
      nodes: [
        {
          id: 'if',
          type: 'condition',
          config: { conditions: [{ left: '{{ inputs.n }}', operator: 'eq', right: 1 }] },
        },
        approve,
        delay('gone', '1h'),
      ],
      edges: [edge('if', 'ask', 'true'), edge('if', 'gone', 'false')],
      inputs: { n: { type: 'number' } },
    })
    const [asks, waits] = [await queue(workflow_id, { n: 1 }), await queue(workflow_id, { n: 2 })]
    await Promise.all([asleep(asks), asleep(waits)])
    await save(workflow_id, {
      nodes: [
        {
          id: 'if',
          type: 'condition',
          config: { conditions: [{ left: '{{ inputs.n }}', operator: 'eq', right: 1 }] },
        },
        approve,
        set('new'),
      ],
      edges: [edge('if', 'ask', 'true'), edge('ask', 'new', 'approved')],
      inputs: { n: { type: 'number' } },
    })
    const [moved, later] = [await queue(workflow_id, { n: 1 }), await queue(workflow_id, { n: 1 })]
    await Promise.all([asleep(moved), asleep(later)])
    await migrate(moved)
    const request = {
      action: 'migrate',
      filter: { workflow_id, status: ['running'] },
      options: { version: 2 },
    } as const
    const preview = await tenant((tx) => previewBatch(tx, request))
    // Newest first; the run that has the version already is not among them.
    assert.deepEqual([preview.count, preview.run_ids], [3, [later, waits, asks]])
    const { checked, refused, refusals: expected } = preview.migration!
    assert.deepEqual([checked, refused, expected.map(({ run_id }) => run_id)], [3, 1, [waits]])
    assert.match(expected[0]!.error.message, /gone: the run waits for it/)
    const batchId = await tenant(async (tx) => {
      const id = await createBatch(tx, request)
      await migrateRun(tx, later, 2)
      return id
    })
    const batch = () => tenant((tx) => getBatch(tx, batchId))
    await until(async () => (await batch()).ended_at !== null)
    const { total, done, refusals } = await batch()
    assert.deepEqual([total, done, refusals.length], [3, 2, 1])
    const [{ run_id, error }] = refusals as [(typeof refusals)[number]]
    assert.deepEqual([run_id, error.code], [waits, 'conflict'])
    assert.match(error.message, /gone: the run waits for it/)
    assert.equal((error.details!.obstacles as Obstacle[])[0]!.node_id, 'gone')
    assert.deepEqual([(await row(asks)).workflow_version, (await row(waits)).workflow_version], [2, 1])
    await decide(asks)
    await untilRun(db, asks)
    assert.equal((await nodes(asks)).new, 'completed')
  })
})
