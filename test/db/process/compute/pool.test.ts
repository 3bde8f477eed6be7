import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { ComputeError, Pool, type PoolOptions } from '../../../../db/process/compute/pool.ts'
import { until } from '../../../support/until.ts'
import type { tasks } from './tasks.ts'

const broke = (limit: ComputeError['limit']) => (error: unknown) =>
  error instanceof ComputeError && error.limit === limit

describe('the pool of threads', () => {
  const pools: Pool<typeof tasks>[] = []
  const create = (options: Partial<PoolOptions> = {}) => {
    const pool = new Pool<typeof tasks>({ module: new URL('./tasks.ts', import.meta.url), ...options })
    pools.push(pool)
    return pool
  }
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.close()))
  })

  it('refuses values that cannot be cloned, and keeps its threads', async () => {
    const pool = create({ threads: 1 })
    for (let n = 0; n < 3; n++)
      await assert.rejects(pool.run('a', 'add', (() => {}) as unknown as number, 2), /could not be cloned/)
    assert.equal(await pool.run('a', 'add', 1, 2), 3)
  })

  it('has no thread before its first task, and none some time after its last', async () => {
    const pool = create({ idleMs: 50 })
    assert.equal(pool.size, 0)
    assert.equal(await pool.run('a', 'add', 1, 2), 3)
    assert.equal(pool.size, 1)
    await until(() => pool.size === 0)
    assert.equal(await pool.run('a', 'add', 3, 4), 7)
  })

  it('tells what a task throws, and goes on with the same thread', async () => {
    const pool = create()
    await assert.rejects(pool.run('a', 'fail'), /TypeError: no such thing/)
    assert.equal(pool.size, 1)
    assert.equal(await pool.run('a', 'add', 1, 2), 3)
  })

  it('ends a task past its deadline, and the event loop goes on meanwhile', async () => {
    const pool = create({ deadlineMs: 300 })
    const delay = monitorEventLoopDelay({ resolution: 5 })
    await pool.run('a', 'add', 1, 2)
    delay.enable()
    await assert.rejects(pool.run('a', 'loop'), broke('time'))
    delay.disable()
    assert.ok(delay.percentile(90) / 1e6 < 100, `${delay.percentile(90) / 1e6} ms`)
    assert.equal(await pool.run('a', 'add', 1, 2), 3)
  })

  it('ends a task that takes too much memory, and nothing else', async () => {
    const pool = create({ heapMb: 32 })
    const [filled, added] = await Promise.allSettled([pool.run('a', 'fill'), pool.run('b', 'add', 1, 2)])
    assert.ok(filled.status === 'rejected' && broke('memory')(filled.reason), JSON.stringify(filled))
    assert.equal(added.status === 'fulfilled' && added.value, 3)
    assert.equal(await pool.run('a', 'add', 1, 2), 3)
  })

  it('gives owners their turn: one with many tasks has not all threads, and others go before its later tasks', async () => {
    const pool = create({ deadlineMs: 20_000 })
    const ended: string[] = []
    const run = (owner: string, milliseconds: number) =>
      pool.run(owner, 'sleep', milliseconds).then(() => ended.push(owner))
    const many = Array.from({ length: 6 }, () => run('greedy', 200))
    await run('modest', 1)
    assert.ok(ended.filter((owner) => owner === 'greedy').length <= 3, ended.join())
    await Promise.all(many)
  })

  it('refuses what is too much to wait, of one owner', async () => {
    const pool = create({ queue: { owner: 2, all: 10 } })
    const some = Array.from({ length: 4 }, () => pool.run('greedy', 'sleep', 100))
    const settled = await Promise.allSettled(some)
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
    )
    assert.equal(await pool.run('modest', 'add', 1, 2), 3)
  })

  it('refuses tasks once it is closed', async () => {
    const pool = create()
    const asleep = pool.run('a', 'sleep', 10_000)
    const waits = assert.rejects(asleep, broke('waiting'))
    await pool.close()
    await waits
    await assert.rejects(pool.run('a', 'add', 1, 2), broke('waiting'))
  })
})
