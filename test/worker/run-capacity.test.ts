import assert from 'node:assert/strict'
import { RunCapacity } from '../../worker/run-capacity.ts'

describe('the capacity of a worker', () => {
  function adjusted(capacity: RunCapacity, ms: number, used: number): number {
    for (const time of [ms, ms, 10 * ms]) capacity.record(time)
    capacity.adjust(used)
    return capacity.active
  }

  it('grows up to its limit while it is in use and segments are fast', () => {
    const capacity = new RunCapacity(100)
    const first = capacity.active
    assert.ok(adjusted(capacity, 10, 0.9) > first)
    for (let i = 0; i < 20; i++) adjusted(capacity, 10, 1)
    assert.equal(capacity.active, 100)
  })

  it('stays as it is while it is not in use, or nothing runs', () => {
    const capacity = new RunCapacity(100)
    const first = capacity.active
    assert.equal(adjusted(capacity, 10, 0.5), first)
    capacity.adjust(1)
    assert.equal(capacity.active, first)
  })

  it('shrinks while segments are slow, but never to nothing', () => {
    const capacity = new RunCapacity(100)
    const first = capacity.active
    assert.ok(adjusted(capacity, 500, 1) < first)
    for (let i = 0; i < 20; i++) adjusted(capacity, 500, 1)
    assert.equal(capacity.active, 8)
  })

  describe('if Temporal continues runs late', () => {
    function late(capacity: RunCapacity, ms: number): number {
      for (const delay of [10, ms, ms]) capacity.recordDelay(delay)
      return adjusted(capacity, 10, 1)
    }

    it('shrinks, although segments are fast', () => {
      const capacity = new RunCapacity(100)
      const first = capacity.active
      assert.ok(late(capacity, 600) < first)
    })

    it('shrinks once for all runs that were active before it shrank', () => {
      const capacity = new RunCapacity(100)
      const shrunk = late(capacity, 60_000)
      assert.ok(late(capacity, 60_000) >= shrunk)
    })

    it('grows while most runs are continued in time', () => {
      const capacity = new RunCapacity(100)
      const first = capacity.active
      for (const delay of [10, 20, 5_000]) capacity.recordDelay(delay)
      assert.ok(adjusted(capacity, 10, 1) > first)
    })
  })
})
