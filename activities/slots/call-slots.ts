/**
 * The slots of a worker process for calls of other services: attempts of external nodes, and their tests. A call holds
 * one from its first transaction to its last. A Temporal worker has activity slots, but gives them out in the order of
 * arrival: calls that hang would hold all of them. So a worker polls more activities than it makes calls, and gives the
 * slots out here: each organization, and each service, holds fewer slots than are left, so that one whose calls hang
 * gets at most half, and the next one half of the rest. The last slots are for organizations that hold none. They are
 * counted in memory, because they are of this process and end with it.
 */
export interface SlotLimits {
  /** Calls that the worker makes at once. */
  all: number
  /** The part of `all` that is kept for the first call of an organization. */
  firsts: number
  /** Calls that wait in the worker for a slot, shared by the same rule. */
  waiting: number
  /** Milliseconds that a call waits in the worker before Temporal gives it to any worker. */
  waitMs: number
}

/** One organization makes up to 150 calls at once, and 100 to one service. */
export const CALLS: SlotLimits = { all: 400, firsts: 100, waiting: 150, waitMs: 20_000 }

/** Calls that an organization may always make to a service that hangs for others, while any slot is free. */
const RESERVED_FOR_SERVICE = 5

/** A call that found no place to wait is due again after so long, and one in each interval after it. */
const RETRY_MS = 1_000
const RETRY_INTERVAL_MS = 100
/** No call waits longer before it asks again: the slots may be free long before the last one's turn. */
const MOST_RETRY_MS = 60_000

/** Who asks for a slot. */
export interface Caller {
  organizationId: string
  /** The host of the URL, `mail`, `code`; undefined if it is not known yet. */
  service?: string | undefined
}

export interface Slot {
  /** Tells which service the call is made to. @returns false if that has no slot for it now. */
  use(service: string): boolean
  /** Idempotent. */
  release(): void
}

/** No slot is free for the caller, and no place to wait for one. `retryInMs`: when it is the call's turn to ask again. */
export class NoSlot extends Error {
  override readonly name = 'NoSlot'
  readonly retryInMs: number

  constructor(retryInMs: number) {
    super('no slot is free for the call')
    this.retryInMs = retryInMs
  }
}

interface Waiter extends Caller {
  begin(slot: Slot): void
}

export class CallSlots {
  private readonly limits: SlotLimits
  /** The slots that are held, in all; by organization; by service; by service of an organization. */
  private held = 0
  private readonly ofOrganization = new Counts()
  private readonly ofService = new Counts()
  private readonly ofBoth = new Counts()
  /** The calls that wait, by organization, the first to come first. */
  private readonly queues = new Map<string, Set<Waiter>>()
  private queued = 0
  /** When the next call of an organization that is sent back may ask again: they come one by one. */
  private readonly retries = new Map<string, number>()
  private refused = 0

  constructor(limits: Partial<SlotLimits> = {}) {
    this.limits = { ...CALLS, ...limits }
  }

  /** For metrics: slots held, calls waiting in the worker, and calls sent back so far. */
  get use(): { held: number; waiting: number; refused: number } {
    return { held: this.held, waiting: this.queued, refused: this.refused }
  }

  /** Takes a slot, or waits for one. Rejects with NoSlot, or with the reason of `signal`. */
  take(caller: Caller, signal: AbortSignal): Slot | Promise<Slot> {
    if (this.isFree(caller)) return this.hold(caller)
    const { organizationId } = caller
    const own = this.queues.get(organizationId)?.size ?? 0
    if (own + this.queued >= this.limits.waiting) return Promise.reject(this.refuse(organizationId))
    return this.wait(caller, signal)
  }

  private wait(caller: Caller, signal: AbortSignal): Promise<Slot> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        this.leave(waiter)
      }
      const waiter: Waiter = {
        ...caller,
        begin(slot) {
          leave()
          resolve(slot)
        },
      }
      const onAbort = () => {
        leave()
        reject(signal.reason)
      }
      const timer = setTimeout(() => {
        leave()
        reject(this.refuse(caller.organizationId))
      }, this.limits.waitMs)
      signal.addEventListener('abort', onAbort, { once: true })
      const queue = this.queues.get(caller.organizationId) ?? new Set()
      this.queues.set(caller.organizationId, queue.add(waiter))
      this.queued++
      if (signal.aborted) onAbort()
    })
  }

  private leave(waiter: Waiter): void {
    const queue = this.queues.get(waiter.organizationId)
    if (!queue?.delete(waiter)) return
    this.queued--
    if (queue.size > 0) return
    this.queues.delete(waiter.organizationId)
    // Nobody waits any more: the next call that is sent back need not queue behind those before.
    this.retries.delete(waiter.organizationId)
  }

  /** The calls that are sent back ask again in the order in which they came. */
  private refuse(organizationId: string): NoSlot {
    this.refused++
    const now = Date.now()
    if (this.retries.size > MANY_RETRIES)
      for (const [id, at] of this.retries) if (at < now) this.retries.delete(id)
    const next = Math.max(now + RETRY_MS, (this.retries.get(organizationId) ?? 0) + RETRY_INTERVAL_MS)
    const at = Math.min(next, now + MOST_RETRY_MS)
    this.retries.set(organizationId, at)
    return new NoSlot(at - now)
  }

  private isFree({ organizationId, service }: Caller): boolean {
    const own = this.ofOrganization.of(organizationId)
    if (own + this.held >= this.mostFor(own)) return false
    return service === undefined || this.isFreeAt(organizationId, service, 0)
  }

  /** Whether the service has a slot for the organization; `own`: the slots that the caller holds already. */
  private isFreeAt(organizationId: string, service: string, own: 0 | 1): boolean {
    const held = this.held - own
    const ofOrganization = this.ofOrganization.of(organizationId) - own
    const most = this.mostFor(ofOrganization)
    const both = this.ofBoth.of(keyOf(organizationId, service))
    // The slots of the organization count too: if it calls many hosts that hang, slots remain for its other calls.
    if (both + ofOrganization + held >= most) return false
    return this.ofService.of(service) + held < most || both < RESERVED_FOR_SERVICE
  }

  /** The slots that an organization may share with others. */
  private mostFor(own: number): number {
    const { all, firsts } = this.limits
    return own === 0 ? all : all - firsts
  }

  private hold({ organizationId, service }: Caller): Slot {
    let used: string | undefined
    let isHeld = true
    this.held++
    this.ofOrganization.add(organizationId, 1)
    const count = (service: string | undefined, by: 1 | -1) => {
      if (service === undefined) return
      this.ofService.add(service, by)
      this.ofBoth.add(keyOf(organizationId, service), by)
    }
    const move = (to: string | undefined) => {
      count(used, -1)
      used = to
      count(used, 1)
    }
    move(service)
    return {
      use: (service) => {
        if (service === used) return true
        if (!this.isFreeAt(organizationId, service, 1)) return false
        move(service)
        return true
      },
      release: () => {
        if (!isHeld) return
        isHeld = false
        move(undefined)
        this.held--
        this.ofOrganization.add(organizationId, -1)
        this.dispatch()
      },
    }
  }

  private dispatch(): void {
    for (let next = this.next(); next; next = this.next()) next.begin(this.hold(next))
  }

  /** The first call that may begin of the organization that has the fewest slots. */
  private next(): Waiter | undefined {
    if (this.queued === 0) return undefined
    const turns = [...this.queues].sort(([a], [b]) => this.ofOrganization.of(a) - this.ofOrganization.of(b))
    for (const [, queue] of turns) for (const waiter of queue) if (this.isFree(waiter)) return waiter
    return undefined
  }
}

/** Organizations whose next retry is remembered, before those in the past are dropped. */
const MANY_RETRIES = 1_000

const keyOf = (organizationId: string, service: string) => `${organizationId} ${service}`

/** Numbers by key; a key without a number has 0, and takes no memory. */
class Counts {
  private readonly counts = new Map<string, number>()

  of(key: string): number {
    return this.counts.get(key) ?? 0
  }

  add(key: string, by: 1 | -1): void {
    const count = this.of(key) + by
    if (count === 0) this.counts.delete(key)
    else this.counts.set(key, count)
  }
}
