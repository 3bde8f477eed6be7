/** Bounds of the work on batches. */
export interface BatcherOptions<T> {
  /** Items that are worked on together at most. Default 50. */
  size?: number
  /** Works of one key at the same time. Default 1. */
  lanes?: number
  /** The size of an item, in bytes: together they stay below `bytes`, unless one alone is larger. */
  bytesOf?: (item: T) => number
  bytes?: number
  /** Items of the same id are not worked on together. */
  idOf?: (item: T) => string | undefined
}

/** Thrown by work on several items: nothing of it remains, and each item is to be worked on by itself. */
export class EachAlone extends Error {
  constructor(cause: unknown) {
    super('each item alone', { cause })
    this.name = 'EachAlone'
  }
}

/** Items that are worked on by themselves at the same time. */
const ALONE = 4

/**
 * Collects what arrives while work of the same key is under way, and works on it as a batch: under load many requests share
 * one statement or one transaction, and a single one does not wait.
 */
export class Batcher<T, R> {
  private readonly queues = new Map<string, Queue<T, R>>()
  private readonly work: (items: T[], key: string) => Promise<R[]>
  private readonly options: BatcherOptions<T>

  /** `work` returns the result of each item. What it throws is the error of all, unless it is EachAlone. */
  constructor(work: (items: T[], key: string) => Promise<R[]>, options: BatcherOptions<T> = {}) {
    this.work = work
    this.options = options
  }

  add(key: string, item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const queue = this.queues.get(key) ?? { waiting: [], busy: 0 }
      this.queues.set(key, queue)
      queue.waiting.push({ item, resolve, reject })
      this.next(key, queue)
    })
  }

  private next(key: string, queue: Queue<T, R>): void {
    const { lanes = 1 } = this.options
    if (queue.waiting.length === 0 && queue.busy === 0) this.queues.delete(key)
    while (queue.busy < lanes && queue.waiting.length > 0) {
      queue.busy++
      void this.settle(key, this.takeFrom(queue)).finally(() => {
        queue.busy--
        this.next(key, queue)
      })
    }
  }

  private takeFrom(queue: Queue<T, R>): Waiting<T, R>[] {
    const {
      size = 50,
      bytesOf = () => 0,
      bytes = Number.POSITIVE_INFINITY,
      idOf = () => undefined,
    } = this.options
    const taken: Waiting<T, R>[] = []
    const left: Waiting<T, R>[] = []
    const ids = new Set<string>()
    let sum = 0
    for (const one of queue.waiting) {
      const id = idOf(one.item)
      const fits =
        taken.length === 0 ||
        (taken.length < size && sum + bytesOf(one.item) <= bytes && (id === undefined || !ids.has(id)))
      if (!fits) {
        left.push(one)
        continue
      }
      taken.push(one)
      sum += bytesOf(one.item)
      if (id !== undefined) ids.add(id)
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
      if (error instanceof EachAlone && taken.length > 1) return this.settleEach(key, taken)
      for (const { reject } of taken) reject(error instanceof EachAlone ? error.cause : error)
    }
  }

  private async settleEach(key: string, taken: Waiting<T, R>[]): Promise<void> {
    const rest = [...taken]
    const drain = async () => {
      for (let one = rest.shift(); one; one = rest.shift()) await this.settle(key, [one])
    }
    await Promise.all(Array.from({ length: ALONE }, drain))
  }
}

interface Waiting<T, R> {
  item: T
  resolve(value: R): void
  reject(error: unknown): void
}

interface Queue<T, R> {
  waiting: Waiting<T, R>[]
  busy: number
}
