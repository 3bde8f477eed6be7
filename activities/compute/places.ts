/**
 * The segments of a worker that wait for a thread, or have one. They occupy slots of local activities, so only a part of
 * those may do so. One organization holds at most as many places as are still free.
 */
export class Places {
  private readonly most: number
  private readonly held = new Map<string, number>()
  private all = 0

  /** @param segments that the worker runs at once. */
  constructor(segments: number) {
    this.most = Math.max(2, Math.floor(segments / 4))
  }

  /** @returns what gives the place back; undefined if none is free for the organization. */
  take(organizationId: string): (() => void) | undefined {
    const own = this.held.get(organizationId) ?? 0
    if (own + this.all >= this.most) return undefined
    this.count(organizationId, 1)
    return () => this.count(organizationId, -1)
  }

  private count(organizationId: string, by: 1 | -1): void {
    this.all += by
    const own = (this.held.get(organizationId) ?? 0) + by
    if (own === 0) this.held.delete(organizationId)
    else this.held.set(organizationId, own)
  }
}
