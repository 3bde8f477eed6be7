/** Bounds of the work on batches. */
export interface BatcherOptions<T> {
  /**
   * Items that are worked on together at most. Default 100, one batch at a time: two at a time of up to 50 take 1.3 times
   * the CPU time for a request of 128 clients of an incoming webhook.
   */
  size?: number
  /** The size of an item, in bytes: together they stay below `bytes`, unless one alone is larger. */
  bytesOf?: (item: T) => number
  bytes?: number
  /** Items that share an id are not worked on together. */
  idsOf?: (item: T) => string[]
}

/**
 * Collects what arrives while work of the same key is under way, and works on it as a batch: under load many requests
 * share one statement or one transaction, and a single one does not wait. What it gains is written in `together.ts`.
 */
export class Batcher<T, R> {
  private readonly queues = new Map<string, Queue<T, R>>()
  private readonly work: (items: T[], key: string) => Promise<R[]>
  private readonly options: BatcherOptions<T>

  /** `work` returns the result of each item. What it throws is the error of all. */
  constructor(work: (items: T[], key: string) => Promise<R[]>, options: BatcherOptions<T> = {}) {
    this.work = work
    this.options = options
  }

  add(key: string, item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const queue = this.queues.get(key) ?? { waiting: [], busy: false }
      this.queues.set(key, queue)
      queue.waiting.push({ item, resolve, reject })
      if (!queue.busy) void this.drain(key, queue)
    })
  }

  private async drain(key: string, queue: Queue<T, R>): Promise<void> {
    queue.busy = true
    while (queue.waiting.length > 0) await this.settle(key, this.takeFrom(queue))
    this.queues.delete(key)
  }

  private takeFrom(queue: Queue<T, R>): Waiting<T, R>[] {
    const { size = 100, bytesOf = () => 0, bytes = Number.POSITIVE_INFINITY, idsOf = () => [] } = this.options
    const taken: Waiting<T, R>[] = []
    const left: Waiting<T, R>[] = []
    const ids = new Set<string>()
    let sum = 0
    for (const one of queue.waiting) {
      const own = idsOf(one.item)
      const fits =
        taken.length === 0 ||
        (taken.length < size && sum + bytesOf(one.item) <= bytes && !own.some((id) => ids.has(id)))
      if (!fits) {
        left.push(one)
        continue
      }
      taken.push(one)
      sum += bytesOf(one.item)
      for (const id of own) ids.add(id)
    }
    queue.waiting = left
    return taken
  }

  private async settle(key: string, taken: Waiting<T, R>[]): Promise<void> {
    const items = taken.map(({ item }) => item)
    try {
      const results = await this.work(items, key)
      for (const [i, { resolve }] of taken.entries()) resolve(results[i]!)
    } catch (error) {
      for (const { reject } of taken) reject(error)
    }
  }
}

interface Waiting<T, R> {
  item: T
  resolve(value: R): void
  reject(error: unknown): void
}

interface Queue<T, R> {
  waiting: Waiting<T, R>[]
  busy: boolean
}
