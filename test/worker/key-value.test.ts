import { deepEqual, equal, match } from 'node:assert/strict'
import { createRetry, prepareRetryOf } from '../../db/runs/retry.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { createMember, createOrganization, testActor } from '../support/database.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

describe('the key-value store of workflows', () => {
  const suite = withWorker()

  const queue = (configs: Record<string, unknown>[], organizationId = suite.organizationId) => {
    const nodes = configs.map((config, index): NodeSpec => ({ id: `n${index}`, type: 'key_value', config }))
    const edges = nodes.slice(1).map(({ id }, index) => ({ from: `n${index}`, handle: 'success', to: id }))
    const outputs = Object.fromEntries(nodes.map(({ id }) => [id, `{{ nodes.${id}.output }}`]))
    return queueRun(suite.db, organizationId, { nodes, edges, outputs })
  }
  const run = async (...configs: Record<string, unknown>[]) => {
    const ended = await untilRun(suite.db, await queue(configs))
    return ended.outputs ? Object.values(ended.outputs) : ended.error
  }
  const get = (key: string) => ({ operation: 'get', key })
  const set = (key: string, value: unknown, more = {}) => ({ operation: 'set', key, value, ...more })
  const increment = (key: string, more = {}) => ({ operation: 'increment', key, ...more })

  it('keeps values of any type between runs, for one organization', async () => {
    const value = { list: [1, null, 'ü'], deep: { a: true } }
    deepEqual(await run(set('a', value), set('none', null)), [
      { key: 'a', value, stored: true, expires_at: null },
      { key: 'none', value: null, stored: true, expires_at: null },
    ])
    deepEqual(await run(get('a'), get('none'), { ...get('missing'), default: 7 }), [
      { key: 'a', value, found: true, expires_at: null },
      { key: 'none', value: null, found: true, expires_at: null },
      { key: 'missing', value: 7, found: false, expires_at: null },
    ])
    const other = await createOrganization(suite.db)
    const { outputs } = await untilRun(suite.db, await queue([get('a'), { operation: 'list' }], other))
    deepEqual(outputs, {
      n0: { key: 'a', value: null, found: false, expires_at: null },
      n1: { data: [], has_more: false },
    })
  })

  it('lists keys by their beginning, and deletes them', async () => {
    await run(set('p:b', 1), set('p:a', 2), set('p%', 3))
    const [page, all] = (await run(
      { operation: 'list', prefix: 'p:', limit: 1 },
      { operation: 'list', prefix: 'p' },
    )) as { data: { key: string }[]; has_more: boolean }[]
    deepEqual(page, { data: [{ key: 'p:a', value: 2, expires_at: null }], has_more: true })
    deepEqual(
      all!.data.map(({ key }) => key),
      ['p%', 'p:a', 'p:b'],
    )
    const remove = { operation: 'delete', key: 'p:a' }
    deepEqual(await run(remove, remove, get('p:a')), [
      { key: 'p:a', deleted: true },
      { key: 'p:a', deleted: false },
      { key: 'p:a', value: null, found: false, expires_at: null },
    ])
  })

  it('lets people take turns, also in concurrent runs, and reads them', async () => {
    const ids = [
      await createMember(suite.db, suite.organizationId, 'Ada'),
      await createMember(suite.db, suite.organizationId, 'Ben'),
      await createMember(suite.db, suite.organizationId, 'Cyd'),
    ]
    const [ada, ben, cyd] = ids as [string, string, string]
    const nobody = '019a0000-0000-7000-8000-00000000000f'
    const people = (config: Record<string, unknown>) =>
      queueRun(suite.db, suite.organizationId, {
        nodes: [{ id: 'who', type: 'people', config }],
        outputs: { who: '{{ nodes.who.output }}' },
      })
    const ended = async (config: Record<string, unknown>) => untilRun(suite.db, await people(config))
    const named = (run: { outputs: unknown }) => (run.outputs as { who: { name: string; id: string } }).who
    const next = {
      operation: 'next',
      rotation: 'leads',
      among: [`${ada}@EXAMPLE.com`, ben, nobody, cyd, ben],
    }
    const runs = await Promise.all(Array.from({ length: 12 }, () => people(next)))
    const taken = (await Promise.all(runs.map((id) => untilRun(suite.db, id)))).map((run) => named(run).id)
    for (const id of ids) equal(taken.filter((one) => one === id).length, 4)
    // In their order, and a newcomer gets one turn, not all that he has missed.
    const turns = []
    const dee = await createMember(suite.db, suite.organizationId, 'Dee')
    for (let n = 0; n < 5; n++) turns.push(named(await ended({ ...next, among: [...next.among, dee] })).name)
    equal(turns[0], 'Dee')
    equal(turns[4], 'Dee')
    deepEqual(new Set(turns.slice(1, 4)), new Set(['Ada', 'Ben', 'Cyd']))
    deepEqual(named(await ended({ operation: 'get', id: ada })), {
      id: ada,
      name: 'Ada',
      email: `${ada}@example.com`,
      role: 'member',
    })
    equal(named(await ended({ operation: 'find', email: `${ben}@Example.com` })).name, 'Ben')
    const { data } = named(await ended({ operation: 'list', role: 'member' })) as unknown as {
      data: object[]
    }
    equal(data.length, 4)
    const other = await createOrganization(suite.db)
    const foreign = await createMember(suite.db, other, 'Eve')
    for (const config of [
      { operation: 'get', id: null },
      { operation: 'get', id: foreign },
      { operation: 'find', email: 'nobody@example.com' },
      { ...next, among: [nobody, foreign] },
    ]) {
      const { status, error } = await ended(config)
      deepEqual([status, (error as { code: string }).code], ['failed', 'no_such_user'])
    }
    await run(set('rotation:broken', 'x'))
    equal((await ended({ operation: 'next', rotation: 'broken' })).error?.code, 'conflict')
  })

  it('gives each of many concurrent runs another number', async () => {
    const ids = await Promise.all(
      Array.from({ length: 12 }, () => queue([increment('invoice'), increment('invoice')])),
    )
    const ended = await Promise.all(ids.map((id) => untilRun(suite.db, id)))
    const numbers = ended.flatMap(({ outputs }) =>
      Object.values(outputs as Record<string, { value: number }>).map(({ value }) => value),
    )
    deepEqual(
      numbers.toSorted((a, b) => a - b),
      Array.from({ length: 24 }, (_, n) => n + 1),
    )
  })

  it('lets one of many concurrent runs be the first', async () => {
    const first = set('order:7', 'mine', { only_if_absent: true })
    const ids = await Promise.all(Array.from({ length: 8 }, () => queue([first])))
    const ended = await Promise.all(ids.map((id) => untilRun(suite.db, id)))
    const stored = ended.map(({ outputs }) => (outputs as { n0: { stored: boolean } }).n0.stored)
    equal(stored.filter(Boolean).length, 1)
  })

  it('adds fractions exactly, and refuses what is no number', async () => {
    const sums = (await run(
      increment('f', { by: 0.1 }),
      increment('f', { by: 0.2 }),
      increment('f', { by: -1 }),
    )) as {
      value: number
    }[]
    deepEqual(
      sums.map(({ value }) => value),
      [0.1, 0.3, -0.7],
    )
    const refused = (await run(set('text', 'x'), increment('text'))) as { code: string; message: string }
    equal(refused.code, 'invalid_request')
    match(refused.message, /its value is no number/)
    deepEqual(await run(get('text')), [{ key: 'text', value: 'x', found: true, expires_at: null }])
    match(((await run(set('big', 'x'.repeat(40_000)))) as { message: string }).message, /32768 bytes/)
  })

  it('forgets what has expired, also before it is purged', async () => {
    const ttl = '1h'
    const [counted, again] = (await run(increment('rate', { ttl }), increment('rate', { ttl: '2h' }))) as {
      expires_at: string
    }[]
    equal(again!.expires_at, counted!.expires_at)
    await run(set('seen', 1, { ttl }))
    await suite.db
      .system('key_values')
      .whereIn('key', ['rate', 'seen'])
      .update({ expires_at: new Date(Date.now() - 1_000) })
    const [value, one, free, listed, gone] = (await run(
      get('seen'),
      increment('rate', { by: 5 }),
      set('seen', 2, { only_if_absent: true }),
      { operation: 'list', prefix: 'seen' },
      { operation: 'delete', key: 'seen' },
    )) as Record<string, unknown>[]
    equal(value!.found, false)
    deepEqual([one!.value, one!.expires_at], [5, null])
    deepEqual([free!.stored, (listed!.data as unknown[]).length, gone!.deleted], [true, 1, true])
  })

  it('writes once in a run and its retries, and gives the same result again', async () => {
    const nodes: NodeSpec[] = [
      { id: 'number', type: 'key_value', config: increment('once') },
      { id: 'fail', type: 'parse_json', config: { text: '{' } },
    ]
    const edges = [{ from: 'number', handle: 'success', to: 'fail' }]
    const id = await queueRun(suite.db, suite.organizationId, { nodes, edges })
    equal((await untilRun(suite.db, id)).status, 'failed')
    await run(increment('once'))
    const retry = await suite.db.tenant(suite.organizationId, testActor, async (tx) =>
      createRetry(tx, await prepareRetryOf(tx, id, { from_start: true, version: 'same' }), 0),
    )
    await untilRun(suite.db, retry)
    const row = await suite.db.system('run_nodes').where({ run_id: retry, node_id: 'number' }).first()
    equal(row!.output.value, 1)
    deepEqual(await run(get('once')), [{ key: 'once', value: 2, found: true, expires_at: null }])
  })

  it('writes again in a retry where its key or value is rendered otherwise', async () => {
    const nodes: NodeSpec[] = [
      { id: 'own', type: 'key_value', config: set('of:{{ run.id }}', 1) },
      { id: 'last', type: 'key_value', config: set('last', '{{ run.id }}') },
      { id: 'fail', type: 'parse_json', config: { text: '{' } },
    ]
    const edges = [
      { from: 'own', handle: 'success', to: 'last' },
      { from: 'last', handle: 'success', to: 'fail' },
    ]
    const id = await queueRun(suite.db, suite.organizationId, { nodes, edges })
    await untilRun(suite.db, id)
    const retry = await suite.db.tenant(suite.organizationId, testActor, async (tx) =>
      createRetry(tx, await prepareRetryOf(tx, id, { from_start: true, version: 'same' }), 0),
    )
    await untilRun(suite.db, retry)
    const [first, second, last] = (await run(get(`of:${id}`), get(`of:${retry}`), get('last'))) as {
      value: unknown
    }[]
    deepEqual([first!.value, second!.value, last!.value], [1, 1, retry])
  })
})
