import assert from 'node:assert/strict'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { CHAIN_START, createRun, createRuns, type NewRun } from '../../db/runs/runs.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('runs that keys of their settings hold back, over two workers', () => {
  const suite = withWorker()
  let second: TestWorker
  before(async () => {
    second = await startWorker(suite.db)
  })
  after(() => second?.stop())

  const KEY = '{{ inputs.key }}'
  const workflow = (settings: Definition['settings'], time = '300ms') => ({
    nodes: [{ id: 'sleep', type: 'delay', config: { for: time } }],
    inputs: { key: { type: 'any' as const }, n: { type: 'number' as const } },
    settings,
  })
  const row = (id: string) => suite.db.system('runs').where({ id }).first()
  const inTenant = <T>(work: Parameters<typeof suite.db.tenant<T>>[2]) =>
    suite.db.tenant(suite.organizationId, testActor, work)
  const start = (settings: Definition['settings'], inputs: object, time?: string) =>
    queueRun(suite.db, suite.organizationId, workflow(settings, time), inputs as Record<string, unknown>)
  async function newRun(of: string, inputs: object): Promise<NewRun> {
    const { workflow_id, workflow_version, workflow_name } = await row(of)
    return {
      workflow: { id: workflow_id, version: workflow_version, name: workflow_name },
      trigger: { type: 'api' },
      inputs: inputs as Record<string, unknown>,
      chain: CHAIN_START,
    }
  }
  const more = async (of: string, inputs: object) => {
    const run = await newRun(of, inputs)
    return inTenant((tx) => createRun(tx, run))
  }

  const untilDebounced = (id: string) =>
    until(async () => (await row(id)).hold === 'debounce', `the debounce of ${id}`)
  /** As if the time had passed for which its key must be quiet. */
  async function endDebounce(id: string): Promise<void> {
    await untilDebounced(id)
    await suite.db.system('runs').where({ id }).update({ hold_until: new Date() })
  }

  /** The greatest number of the runs that were in progress at the same time. */
  function overlap(runs: { started_at: Date; ended_at: Date }[]): number {
    return Math.max(
      ...runs.map(({ started_at: at }) => runs.filter((r) => r.started_at <= at && r.ended_at > at).length),
    )
  }

  it('fail the run whose key cannot be stored, and go on with the others', async () => {
    const settings = { rate: { limit: 100, per: '1h', key: '{{ inputs.key | split: "" | first }}' } }
    const first = await start(settings as Definition['settings'], { key: 'a' })
    const half = await more(first, { key: '😀' })
    const later = await more(first, { key: 'b' })
    assert.equal((await untilRun(suite.db, half)).error?.code, 'invalid_key')
    for (const id of [first, later]) assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })

  it('take the place of a debounced run that was paused and resumed', async () => {
    const settings = { debounce: { for: '1h', key: KEY } } as Definition['settings']
    const first = await start(settings, { key: 'a' })
    await untilDebounced(first)
    await inTenant((tx) => pauseRun(tx, first))
    await inTenant((tx) => unpauseRun(tx, first))
    const second = await more(first, { key: 'a' })
    assert.equal((await untilRun(suite.db, first)).status, 'skipped')
    await endDebounce(second)
    assert.equal((await untilRun(suite.db, second)).status, 'completed')
  })

  describe('concurrency', () => {
    it('limits each key, in order, and other keys run beside it', async () => {
      const settings = { concurrency: { policy: 'queue' as const, limit: 1, key: KEY } }
      const first = await start(settings, { key: 'a' }, '1s')
      const ids = [first]
      for (const key of ['a', 'a', 'b', 'c']) ids.push(await more(first, { key }))
      const ends = await Promise.all(ids.map((id) => untilRun(suite.db, id)))
      assert.deepEqual(
        ends.map(({ status }) => status),
        Array(5).fill('completed'),
      )
      const rows = await suite.db.system('runs').whereIn('id', ids).orderBy('id')
      assert.equal(overlap(rows.slice(0, 3)), 1)
      assert.ok(rows[0].started_at < rows[1].started_at && rows[1].started_at < rows[2].started_at)
      assert.ok(rows[3].started_at < rows[1].started_at, 'another key waits')
      assert.deepEqual(rows[0].keys, { concurrency: 'a' })
    })

    it('skips with a reason', async () => {
      const settings = { concurrency: { policy: 'skip' as const, limit: 1, key: KEY } }
      const first = await start(settings, { key: 7 }, '2s')
      await untilRun(suite.db, first, ['running'])
      const [same, other] = [await more(first, { key: 7 }), await more(first, { key: 8 })]
      const end = await untilRun(suite.db, same)
      assert.equal(end.status, 'skipped')
      assert.deepEqual(end.error, {
        code: 'concurrency_limit',
        message:
          'The run was skipped: Test allows one run of a key at a time, and skips others (settings.concurrency).',
      })
      assert.equal((await untilRun(suite.db, other)).status, 'completed')
      assert.equal((await untilRun(suite.db, first)).status, 'completed')
    })

    it('cancels the older run of a key for the newer one', async () => {
      const settings = { concurrency: { policy: 'cancel_running' as const, limit: 1, key: KEY } }
      const first = await start(settings, { key: 'a' }, '20s')
      await untilRun(suite.db, first, ['running'])
      const other = await more(first, { key: 'b' })
      const waiting = await more(first, { key: 'a' })
      const newest = await more(first, { key: 'a' })
      assert.equal((await untilRun(suite.db, first)).status, 'cancelled')
      assert.equal((await untilRun(suite.db, waiting)).status, 'cancelled')
      await untilRun(suite.db, newest, ['running'])
      await untilRun(suite.db, other, ['running'])
    })
  })

  describe('debounce', () => {
    it('starts the last of a burst once, and skips the others with a reason', async () => {
      const settings = { debounce: { key: KEY, for: '1h' } }
      const first = await start(settings, { key: 'a', n: 0 })
      const ids = [first]
      for (let n = 1; n <= 5; n++) ids.push(await more(first, { key: 'a', n }))
      const other = await more(first, { key: 'b', n: 0 })
      await untilDebounced(ids[5]!)
      const last = await row(ids[5]!)
      assert.equal(last.hold_until - last.created_at, 3_600_000)
      await endDebounce(ids[5]!)
      await endDebounce(other)
      const ends = await Promise.all(ids.map((id) => untilRun(suite.db, id)))
      assert.deepEqual(
        ends.map(({ status }) => status),
        [...Array(5).fill('skipped'), 'completed'],
      )
      assert.equal(ends[4]!.error!.code, 'debounced')
      assert.match(ends[4]!.error!.message, new RegExp(ids[5]!))
      assert.equal((await untilRun(suite.db, other)).status, 'completed')
    })

    it('is bounded by at_most', async () => {
      const first = await start({ debounce: { key: KEY, for: '1h', at_most: '2h' } }, { key: 'a' })
      await untilDebounced(first)
      await suite.db
        .system('runs')
        .where({ id: first })
        .update({ debounced_from: new Date(Date.now() - 7_200_000) })
      const last = await more(first, { key: 'a' })
      assert.equal((await untilRun(suite.db, first)).error?.code, 'debounced')
      assert.equal((await untilRun(suite.db, last)).status, 'completed')
      // The next burst begins anew.
      await untilDebounced(await more(first, { key: 'a' }))
    })
  })

  describe('rate', () => {
    it('lets at most limit runs of a key start within any window', async () => {
      const settings = { rate: { key: KEY, limit: 2, per: '2s', policy: 'queue' as const } }
      const first = await start(settings, { key: 'a' }, '10ms')
      const run = await newRun(first, { key: 'a' })
      const ids = [first, ...(await inTenant((tx) => createRuns(tx, [run, run, run, run])))]
      const other = await more(first, { key: 'b' })
      assert.equal((await untilRun(suite.db, other)).status, 'completed')
      assert.equal((await row(ids[4]!)).hold, 'rate')
      for (const id of ids) assert.equal((await untilRun(suite.db, id)).status, 'completed')
      const rows = await suite.db.system('runs').whereIn('id', ids).orderBy('rated_at')
      for (let i = 2; i < rows.length; i++) assert.ok(rows[i].rated_at - rows[i - 2].rated_at >= 2_000)
    })

    it('skips others with the policy skip', async () => {
      const first = await start({ rate: { limit: 1, per: '1d', policy: 'skip' } }, { key: 'a' })
      const second = await more(first, { key: 'b' })
      const end = await untilRun(suite.db, second)
      assert.deepEqual([end.status, end.error!.code], ['skipped', 'rate_limit'])
      assert.equal((await untilRun(suite.db, first)).status, 'completed')
    })
  })

  for (const [what, key, message] of [
    ['nothing', null, /settings\.concurrency\.key .* renders to nothing/],
    ['white space', ' \n ', /settings\.concurrency\.key .* renders to nothing/],
    ['10 KB', 'x'.repeat(10_240), /renders to 10240 characters, at most 200 are allowed/],
    ['an object', { a: 1 }, /renders to an object or a list/],
  ] as const)
    it(`fails a run whose key renders to ${what}, with the reason`, async () => {
      const id = await start({ concurrency: { policy: 'queue', limit: 1, key: KEY } }, { key })
      const end = await untilRun(suite.db, id)
      assert.equal(end.status, 'failed')
      assert.equal(end.error!.code, 'invalid_key')
      assert.match(end.error!.message, message)
    })
})
