import { AppError } from '../../db/errors.ts'

/** Streams that are open at the same time in this process: of one key or session, and of an organization. */
const MOST = { caller: 10, organization: 50 }

/** Seconds after which a refused client may try again. */
const RETRY_AFTER = 10

/** Limits the open streams: each holds a connection and is polled. */
export class StreamSlots {
  private readonly open = new Map<string, number>()

  /** Takes a slot. Throws `rate_limited`. @returns what releases it, once. */
  take(callerId: string, organizationId: string): () => void {
    const slots: [string, number][] = [
      [`caller ${callerId}`, MOST.caller],
      [`organization ${organizationId}`, MOST.organization],
    ]
    for (const [name, most] of slots)
      if ((this.open.get(name) ?? 0) >= most)
        throw new AppError('rate_limited', `${name.split(' ')[0]}: ${most} streams are open`, {
          hint: 'close one, or poll GET /v1/runs/{run_id}',
          retry_after: RETRY_AFTER,
        })
    for (const [name] of slots) this.open.set(name, (this.open.get(name) ?? 0) + 1)
    let taken = true
    return () => {
      if (!taken) return
      taken = false
      for (const [name] of slots) {
        const left = this.open.get(name)! - 1
        if (left > 0) this.open.set(name, left)
        else this.open.delete(name)
      }
    }
  }
}
