import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '../../activities/deadline.ts'

describe('work with a deadline', () => {
  const aborted = (signal: AbortSignal) =>
    new Promise<unknown>((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)))

  it('is told when its time is over', async () => {
    const outer = new AbortController()
    const [reason, isOver] = await withDeadline(20, outer.signal, async (signal, isOver) => [
      await aborted(signal),
      isOver(),
    ])
    assert.equal((reason as Error).name, 'TimeoutError')
    assert.equal(isOver, true)
  })

  it('is told when its caller gives up, before or during it', async () => {
    const during = new AbortController()
    setTimeout(() => during.abort('enough'), 10)
    const work = async (signal: AbortSignal, isOver: () => boolean) => [
      signal.aborted ? signal.reason : await aborted(signal),
      isOver(),
    ]
    assert.deepEqual(await withDeadline(60_000, during.signal, work), ['enough', false])
    assert.deepEqual(await withDeadline(60_000, during.signal, work), ['enough', false])
  })

  it('leaves nothing behind, also if it fails', async () => {
    const outer = new AbortController()
    let inner: AbortSignal | undefined
    const failing = withDeadline(20, outer.signal, async (signal) => {
      inner = signal
      throw new Error('no')
    })
    await assert.rejects(failing, /no/)
    await withDeadline(20, outer.signal, async () => {})
    await sleep(40)
    assert.equal(inner?.aborted, false)
    assert.deepEqual(getEventListeners(outer.signal, 'abort'), [])
  })

  it('has the longest time that a timer can have, and not none, if it is given more', async () => {
    const signal = new AbortController().signal
    assert.equal(await withDeadline(2 ** 40, signal, (_, isOver) => sleep(20).then(isOver)), false)
  })
})
