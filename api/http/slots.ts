import { AppError } from '../../db/model/errors.ts'

/** Seconds until a refused client may try again. */
const RETRY_AFTER = 10

export interface SlotLimits {
  /** What a slot is for, in the plural. */
  of: string
  /** The most in this process: in all, of one organization, and of one of its keys or sessions. */
  most: { process?: number; organization: number; caller?: number }
  hint: string
}

type Holder = 'process' | 'organization' | 'caller'

/** Limits what is in progress in this process, by callers and organizations. */
export class Slots {
  private readonly limits: SlotLimits
  /** The number of slots in use by id of the caller or organization. */
  private readonly used = new Map<string, number>()

  constructor(limits: SlotLimits) {
    this.limits = limits
  }

  /** Takes a slot. Throws `rate_limited`. @returns a function that releases it once. */
  take(callerId: string, organizationId: string): () => void {
    const { of, hint } = this.limits
    const taken = this.tryToTake(organizationId, callerId)
    if (typeof taken === 'function') return taken
    const { limit, holder } = taken
    throw new AppError('rate_limited', `the limit of ${limit} ${of} of the ${holder} is reached`, {
      hint,
      retry_after: RETRY_AFTER,
    })
  }

  /** Takes a slot. @returns a function that releases it once, or the limit that is reached. */
  tryToTake(organizationId: string, callerId?: string): (() => void) | { holder: Holder; limit: number } {
    const { most } = this.limits
    const ids = { caller: callerId, organization: organizationId, process: 'process' }
    const held = (['caller', 'organization', 'process'] as const).flatMap((holder) => {
      const [id, limit] = [ids[holder], most[holder]]
      return id === undefined || limit === undefined ? [] : [{ holder, id, limit }]
    })
    for (const { holder, id, limit } of held) if ((this.used.get(id) ?? 0) >= limit) return { holder, limit }
    for (const { id } of held) this.used.set(id, (this.used.get(id) ?? 0) + 1)
    let taken = true
    return () => {
      if (!taken) return
      taken = false
      for (const { id } of held) {
        const left = this.used.get(id)! - 1
        if (left > 0) this.used.set(id, left)
        else this.used.delete(id)
      }
    }
  }
}

/** The open streams: each one holds a connection and is polled. */
export const streamSlots = () =>
  new Slots({
    of: 'open streams',
    most: { caller: 10, organization: 50 },
    hint: 'close one, or poll GET /v1/runs/{run_id}',
  })

/** The tests of nodes for whose end a request waits, with its connection. */
export const nodeTestSlots = () =>
  new Slots({
    of: 'node tests in progress',
    most: { organization: 20 },
    hint: 'wait until others have ended, or run a workflow',
  })

/** Documents that are received or fetched: each one is in memory until its text is stored. */
export const documentSlots = () =>
  new Slots({
    of: 'documents that are received or fetched',
    most: { process: 16, organization: 4 },
    hint: 'send fewer at once',
  })

/** The requests of incoming webhooks that wait for the answer of a workflow, each with its connection. */
export const responseSlots = () =>
  new Slots({
    of: 'requests that wait for a workflow',
    most: { process: 500, organization: 100 },
    hint: 'send fewer at once',
  })
