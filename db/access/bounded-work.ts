import { AppError } from '../model/errors.ts'

/**
 * Runs costly work with at most `concurrent` at a time; at most `waiting` more wait for their turn, in order. Throws
 * unavailable at once beyond that, so that a flood neither exhausts memory nor makes everybody wait.
 */
export class BoundedWork {
  private readonly concurrent: number
  private readonly waiting: number
  private running = 0
  private readonly queue: (() => void)[] = []

  constructor(options: { concurrent: number; waiting: number }) {
    this.concurrent = options.concurrent
    this.waiting = options.waiting
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running < this.concurrent) this.running++
    else {
      if (this.queue.length >= this.waiting)
        throw new AppError('unavailable', 'too many requests of this kind at once: try again', {
          retry_after: 2,
        })
      // The one that ends passes its place on, so that nobody overtakes.
      await new Promise<void>((resolve) => this.queue.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = this.queue.shift()
      if (next) next()
      else this.running--
    }
  }
}
