import { AppError } from '../../db/model/errors.ts'

/** Maximum number of open streams in this process: of one key or session, and of one organization. */
const MOST = { caller: 10, organization: 50 }

/** Seconds until a refused client may try again. */
const RETRY_AFTER = 10

/** Limits the open streams: each one holds a connection and is polled. */
export class StreamSlots {
  /** The number of open streams by id of the caller or organization. */
  private readonly open = new Map<string, number>()

  /** Takes a slot. Throws `rate_limited`. @returns a function that releases it once. */
  take(callerId: string, organizationId: string): () => void {
    const holders = { caller: callerId, organization: organizationId }
    for (const holder of ['caller', 'organization'] as const)
      if ((this.open.get(holders[holder]) ?? 0) >= MOST[holder])
        throw new AppError(
          'rate_limited',
          `the limit of ${MOST[holder]} open streams of the ${holder} is reached`,
          {
            hint: 'close one, or poll GET /v1/runs/{run_id}',
            retry_after: RETRY_AFTER,
          },
        )
    const ids = Object.values(holders)
    for (const id of ids) this.open.set(id, (this.open.get(id) ?? 0) + 1)
    let taken = true
    return () => {
      if (!taken) return
      taken = false
      for (const id of ids) {
        const left = this.open.get(id)! - 1
        if (left > 0) this.open.set(id, left)
        else this.open.delete(id)
      }
    }
  }
}
