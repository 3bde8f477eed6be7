import knex from 'knex'

interface Waiter {
  grant(): void
}

/**
 * Turns at the connections of a pool. One organization holds at most a share of them, so that its writes, which may wait
 * for each other's locks, leave connections to the others; who waits takes turns by organization.
 */
export class Shares {
  private readonly size: number
  private readonly most: number
  private readonly maxWaitMs: number
  private used = 0
  private readonly held = new Map<string, number>()
  /** The callers that wait, by organization, in the order of their turns. */
  private readonly waiters = new Map<string, Waiter[]>()

  constructor(size: number, maxWaitMs: number) {
    this.size = size
    this.most = shareOf(size)
    this.maxWaitMs = maxWaitMs
  }

  get waiting(): number {
    let count = 0
    for (const queue of this.waiters.values()) count += queue.length
    return count
  }

  /** Runs `work`, which takes one connection, in its turn. Throws KnexTimeoutError if that does not come in time. */
  async run<T>(organizationId: string, work: () => Promise<T>): Promise<T> {
    if (this.waiters.has(organizationId) || !this.mayTake(organizationId)) await this.turn(organizationId)
    else this.take(organizationId)
    try {
      return await work()
    } finally {
      this.release(organizationId)
    }
  }

  private mayTake(organizationId: string): boolean {
    return this.used < this.size && (this.held.get(organizationId) ?? 0) < this.most
  }

  private take(organizationId: string): void {
    this.used++
    this.held.set(organizationId, (this.held.get(organizationId) ?? 0) + 1)
  }

  private turn(organizationId: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const queue = this.waiters.get(organizationId) ?? []
      this.waiters.set(organizationId, queue)
      const waiter: Waiter = {
        grant: () => {
          clearTimeout(timeout)
          this.take(organizationId)
          resolve()
        },
      }
      const timeout = setTimeout(() => {
        queue.splice(queue.indexOf(waiter), 1)
        if (queue.length === 0) this.waiters.delete(organizationId)
        reject(
          new knex.KnexTimeoutError('no connection became free in time: the organization holds its share'),
        )
      }, this.maxWaitMs)
      queue.push(waiter)
    })
  }

  private release(organizationId: string): void {
    this.used--
    const left = this.held.get(organizationId)! - 1
    if (left > 0) this.held.set(organizationId, left)
    else this.held.delete(organizationId)
    for (const [next, queue] of this.waiters) {
      if (!this.mayTake(next)) continue
      this.waiters.delete(next)
      const waiter = queue.shift()!
      // The others of this organization come after those of the next.
      if (queue.length > 0) this.waiters.set(next, queue)
      waiter.grant()
      return
    }
  }
}

/** The connections that one organization may hold. */
export const shareOf = (size: number): number => (size > 3 ? size - 2 : Math.max(1, size - 1))
