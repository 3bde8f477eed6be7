/** What waits, by whose it is: owners take turns, and what is of one owner stays in order. */
export class RoundRobin<T> {
  /** In the order of the turns of their owners; none is empty. */
  private readonly queues = new Map<string, T[]>()

  get isEmpty(): boolean {
    return this.queues.size === 0
  }

  add(owner: string, item: T): void {
    const queue = this.queues.get(owner)
    if (queue) queue.push(item)
    else this.queues.set(owner, [item])
  }

  /** Takes the first item of the owner whose turn it is. */
  next(): T | undefined {
    const [first] = this.queues
    if (!first) return undefined
    const [owner, queue] = first
    this.queues.delete(owner)
    const item = queue.shift()
    // The others of this owner come after those of the next.
    if (queue.length > 0) this.queues.set(owner, queue)
    return item
  }
}
