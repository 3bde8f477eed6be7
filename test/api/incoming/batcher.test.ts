import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { Batcher, type BatcherOptions } from '../../../api/incoming/batcher.ts'

describe('a batcher', () => {
  /** Doubles numbers, and keeps each batch. */
  function doubling(options: BatcherOptions<number> = {}, fail: (items: number[]) => void = () => {}) {
    const batches: number[][] = []
    const batcher = new Batcher<number, number>(async (items) => {
      batches.push(items)
      await pause(5)
      fail(items)
      return items.map((n) => n * 2)
    }, options)
    const all = (numbers: number[], key = 'one') =>
      Promise.allSettled(numbers.map((n) => batcher.add(key, n))).then((results) =>
        results.map((one) => (one.status === 'fulfilled' ? one.value : (one.reason as Error).message)),
      )
    return { batches, all }
  }

  it('begins at once, and what arrives meanwhile is worked on together, each with its own result', async () => {
    const { batches, all } = doubling()
    assert.deepEqual(await all([1, 2, 3, 4]), [2, 4, 6, 8])
    assert.deepEqual(batches, [[1], [2, 3, 4]])
  })

  it('keeps keys apart', async () => {
    const { batches, all } = doubling()
    await Promise.all([all([1, 2, 3], 'one'), all([4], 'other')])
    assert.deepEqual(batches.toSorted(), [[1], [2, 3], [4]])
  })

  it('has bounds: items, bytes, and one of each id', async () => {
    const bySize = doubling({ size: 2 })
    await bySize.all([1, 2, 3, 4])
    assert.deepEqual(bySize.batches, [[1], [2, 3], [4]])
    const byBytes = doubling({ bytes: 10, bytesOf: (n) => n })
    assert.deepEqual(await byBytes.all([1, 6, 5, 4, 99]), [2, 12, 10, 8, 198])
    assert.deepEqual(byBytes.batches, [[1], [6, 4], [5], [99]])
    const byId = doubling({ idsOf: (n) => (n > 1 ? [String(n)] : []) })
    await byId.all([1, 2, 2, 3, 1, 1])
    assert.deepEqual(byId.batches, [[1], [2, 3, 1, 1], [2]])
  })

  it('an error is that of all', async () => {
    const { all } = doubling({}, (items) => {
      if (items.includes(3)) throw new Error('lost')
    })
    assert.deepEqual(await all([1, 2, 3]), [2, 'lost', 'lost'])
  })
})
