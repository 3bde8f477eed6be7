import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { watch } from '../../../worker/dev/watch.ts'

describe('the watch of a process that can live without working', () => {
  /** The pause is short; a clock of the test's own has each call take the time of the product's pause. */
  const times = { hangs: 20_000, pause: 1 }
  const CALL_MS = 1_000
  const failed = () => Promise.reject(new Error('interrupted (9)'))
  let hung: { milliseconds: number; reason: string }[]
  let clock: number
  let calls: number
  let stop: () => void
  const watched = (ask: () => Promise<void>, pid: () => number = () => 1) => {
    hung = []
    calls = 0
    const counted = () => {
      calls++
      clock += CALL_MS
      return ask()
    }
    stop = watch(
      { ask: counted, pid, hangs: (milliseconds, reason) => hung.push({ milliseconds, reason }) },
      times,
    ).stop
  }
  const now = Date.now
  beforeEach(() => {
    clock = now()
    Date.now = () => clock
  })
  afterEach(() => {
    stop()
    Date.now = now
  })
  /** Calls for twice the time of a hang. */
  const passes = async () => {
    for (const until = calls + (2 * times.hangs) / CALL_MS; calls < until; ) await sleep(1)
  }

  it('finds one that answered and then fails in every call, once, with the reason', async () => {
    let asked = 0
    watched(async () => {
      if (asked++ > 0) await failed()
    })
    while (hung.length === 0) await sleep(1)
    await passes()
    assert.equal(hung.length, 1)
    assert.ok(hung[0]!.milliseconds >= times.hangs, `after ${hung[0]!.milliseconds} ms`)
    assert.equal(hung[0]!.reason, 'interrupted (9)')
  })

  it('leaves a slow one that answers now and then', async () => {
    let asked = 0
    watched(async () => {
      if (asked++ % 6 > 0) await failed()
    })
    await passes()
    assert.deepEqual(hung, [])
  })

  it('leaves one that has not answered yet, as after each start', async () => {
    let started = 1
    let asked = 0
    watched(
      async () => {
        if (asked++ > 0) await failed()
      },
      () => started,
    )
    while (calls < 3) await sleep(1)
    started = 2
    await passes()
    assert.deepEqual(hung, [])
  })

  it('does not take its own standstill for a hang', async () => {
    let asked = 0
    watched(async () => {
      asked++
      if (asked === 2) clock += 2 * times.hangs
      if (asked === 2 || asked === 3) await failed()
    })
    await passes()
    assert.deepEqual(hung, [])
  })
})
