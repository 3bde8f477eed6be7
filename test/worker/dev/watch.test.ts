import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { watch } from '../../../worker/dev/watch.ts'

describe('the watch of a process that can live without working', () => {
  /** A hundredth of the production times. */
  const times = { hangs: 200, pause: 10 }
  const failed = () => Promise.reject(new Error('interrupted (9)'))
  let hung: { milliseconds: number; reason: string }[]
  let stop: () => void
  const watched = (ask: () => Promise<void>, pid: () => number = () => 1) => {
    hung = []
    stop = watch(
      { ask, pid, hangs: (milliseconds, reason) => hung.push({ milliseconds, reason }) },
      times,
    ).stop
  }
  afterEach(() => stop())

  it('finds one that answered and then fails in every call, once, with the reason', async () => {
    let asked = 0
    watched(async () => {
      if (asked++ > 0) await failed()
    })
    for (const until = Date.now() + 10_000; hung.length === 0 && Date.now() < until; ) await sleep(10)
    await sleep(400)
    assert.equal(hung.length, 1)
    assert.ok(hung[0]!.milliseconds >= times.hangs, `after ${hung[0]!.milliseconds} ms`)
    assert.equal(hung[0]!.reason, 'interrupted (9)')
  })

  it('leaves a slow one that answers now and then', async () => {
    let asked = 0
    watched(async () => {
      if (asked++ % 6 > 0) await failed()
    })
    await sleep(1_000)
    assert.ok(asked > 12, `${asked} calls`)
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
    await sleep(50)
    started = 2
    await sleep(600)
    assert.deepEqual(hung, [])
  })

  it('does not take its own standstill for a hang', async () => {
    let asked = 0
    watched(async () => {
      asked++
      if (asked === 2) await sleep(300)
      if (asked === 2 || asked === 3) await failed()
    })
    await sleep(600)
    assert.ok(asked > 3, `${asked} calls`)
    assert.deepEqual(hung, [])
  })
})
