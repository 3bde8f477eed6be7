import assert from 'node:assert/strict'
import { type Caller, CallSlots, NoSlot, type Slot } from '../../../activities/slots/call-slots.ts'
import { inSlot } from '../../../activities/slots/in-slot.ts'

const { signal } = new AbortController()
const of = (organizationId: string, service?: string): Caller => ({ organizationId, service })

/** Takes slots until the next call would wait. @returns those that were taken. */
function takeAll(slots: CallSlots, ...callers: Caller[]): Slot[] {
  const taken: Slot[] = []
  for (let more = true; more; )
    for (const caller of callers) {
      const slot = slots.take(caller, AbortSignal.abort('it would wait'))
      more = !(slot instanceof Promise)
      if (slot instanceof Promise) slot.catch(() => {})
      else taken.push(slot)
    }
  return taken
}

describe('slots for calls', () => {
  it('leave half of them to others, however many calls an organization makes', () => {
    const slots = new CallSlots({ all: 20, firsts: 0 })
    assert.equal(takeAll(slots, of('a')).length, 10)
    assert.equal(takeAll(slots, of('b')).length, 5)
  })

  it('leave some to others, however many organizations have calls that hang', () => {
    const slots = new CallSlots({ all: 20, firsts: 8 })
    for (let n = 0; n < 8; n++) takeAll(slots, of(`organization ${n}`))
    assert.ok(!(slots.take(of('another'), signal) instanceof Promise))
  })

  it('leave some to other services of the organization', () => {
    const slots = new CallSlots({ all: 30, firsts: 0 })
    assert.equal(takeAll(slots, of('a', 'hangs.example')).length, 10)
    assert.ok(!(slots.take(of('a', 'other.example'), signal) instanceof Promise))
  })

  it('leave some to other services, if one hangs for many organizations, which may still call it', () => {
    const slots = new CallSlots({ all: 100, firsts: 0 })
    const many = Array.from({ length: 6 }, (_, n) => of(`organization ${n}`, 'hangs.example'))
    for (const caller of many) takeAll(slots, caller)
    assert.ok(!(slots.take(of('another', 'other.example'), signal) instanceof Promise))
    assert.ok(!(slots.take(of('another', 'hangs.example'), signal) instanceof Promise))
    assert.ok(slots.use.held < 100)
  })

  it('go to the organization with the fewest, and within it to the first that asked', async () => {
    const slots = new CallSlots({ all: 6, firsts: 0, waiting: 20 })
    const [first] = takeAll(slots, of('a'))
    takeAll(slots, of('b'), of('c'), of('d'))
    const order: string[] = []
    const wait = async (organizationId: string, name: string) => {
      const slot = await slots.take(of(organizationId), signal)
      order.push(name)
      return slot
    }
    const waits = [wait('b', 'b1'), wait('e', 'e1'), wait('e', 'e2')]
    first!.release()
    const slot = await Promise.race(waits)
    assert.deepEqual(order, ['e1'])
    slot.release()
    await Promise.race(waits.slice(2).concat(waits.slice(0, 1)))
    assert.equal(order[1], 'e2')
  })

  it('are waited for by few calls of an organization; others are sent back, to ask one after the other', async () => {
    const slots = new CallSlots({ all: 2, firsts: 0, waiting: 4 })
    takeAll(slots, of('a'))
    const waiting = [slots.take(of('a'), signal), slots.take(of('a'), signal)]
    assert.equal(slots.use.waiting, waiting.length)
    const delays: number[] = []
    for (let n = 0; n < 3; n++)
      await assert.rejects(Promise.resolve(slots.take(of('a'), signal)), (error: unknown) => {
        delays.push((error as NoSlot).retryInMs)
        return error instanceof NoSlot
      })
    assert.deepEqual(
      delays.toSorted((x, y) => x - y),
      delays,
    )
    assert.ok(new Set(delays).size === 3 && delays[0]! >= 1_000)
    assert.equal(slots.use.refused, 3)
  })

  it('are asked for again within a minute, however many calls were sent back', async () => {
    const slots = new CallSlots({ all: 2, firsts: 0, waiting: 0 })
    takeAll(slots, of('a'))
    for (let n = 0; n < 2_000; n++)
      await assert.rejects(
        Promise.resolve(slots.take(of('a'), signal)),
        (error: unknown) => error instanceof NoSlot && error.retryInMs <= 60_000,
      )
  })

  it('are not held by a call that is cancelled while it waits, or that waits too long', async () => {
    const slots = new CallSlots({ all: 2, firsts: 0, waiting: 4, waitMs: 10 })
    const [held] = takeAll(slots, of('a'))
    const cancel = new AbortController()
    const cancelled = slots.take(of('a'), cancel.signal)
    cancel.abort(new Error('the run has ended'))
    await assert.rejects(Promise.resolve(cancelled), /the run has ended/)
    await assert.rejects(Promise.resolve(slots.take(of('a'), signal)), NoSlot)
    held!.release()
    assert.deepEqual(slots.use, { held: 0, waiting: 0, refused: 1 })
  })

  it('make an attempt again that has found its service without a free one', async () => {
    const slots = new CallSlots({ all: 6, firsts: 0, waiting: 4 })
    const taken = takeAll(slots, of('a', 'hangs.example'))
    const waits: (string | undefined)[] = []
    const log: string[] = []
    const turn = { ...of('a'), signal, onWait: (service: string | undefined) => waits.push(service) }
    const made = inSlot(slots, turn, async (reach) => {
      log.push('renders')
      reach('hangs.example')
      log.push('calls')
    })
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual([log, waits], [['renders'], ['hangs.example']])
    taken[0]!.release()
    await made
    assert.deepEqual(log, ['renders', 'renders', 'calls'])
    assert.equal(slots.use.held, taken.length - 1)
  })
})
