import assert from 'node:assert/strict'
import { StartPace } from '../../worker/start-pace.ts'

describe('the pace of starts', () => {
  const adjusted = (pace: StartPace, ms: number): number => {
    for (const time of [ms, ms, 20 * ms]) pace.record(time)
    pace.adjust()
    return pace.atOnce
  }

  it('grows to its limit while starts are as fast as they were', () => {
    const pace = new StartPace(32)
    const first = pace.atOnce
    assert.ok(adjusted(pace, 20) > first)
    for (let i = 0; i < 20; i++) adjusted(pace, 30)
    assert.equal(pace.atOnce, 32)
  })

  it('falls while Temporal is slower than it was, but never to nothing, and recovers', () => {
    const pace = new StartPace(32)
    for (let i = 0; i < 20; i++) adjusted(pace, 20)
    assert.ok(adjusted(pace, 300) < 32)
    for (let i = 0; i < 20; i++) adjusted(pace, 300)
    assert.equal(pace.atOnce, 4)
    for (let i = 0; i < 20; i++) adjusted(pace, 20)
    assert.equal(pace.atOnce, 32)
  })

  it('stays as it is where nothing starts, and learns that a machine is slow', () => {
    const pace = new StartPace(32)
    const first = pace.atOnce
    pace.adjust()
    assert.equal(pace.atOnce, first)
    for (let i = 0; i < 20; i++) adjusted(pace, 400)
    assert.equal(pace.atOnce, 32)
  })
})
