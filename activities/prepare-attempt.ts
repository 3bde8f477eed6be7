import { SYSTEM } from '../db/model/actor.ts'
import { type DeliveryJob, loadDelivery } from '../db/outgoing/attempts.ts'
import { beginAttempt, endDelivery } from '../db/outgoing/moves/attempts.ts'
import { takeRate } from '../db/outgoing/rate.ts'
import { delaysOf } from '../db/outgoing/retry-schedule.ts'
import { waitForSlot } from '../db/outgoing/slots.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import type { DeliverAnswer } from '../workflows/bundle/deliver.ts'

const RATE = 'due: the webhook has had its attempts of this minute'
const NO_SLOT = { status: 'waiting', error: 'due: waiting for a free slot of the endpoint' } as const

interface Preparation {
  organization_id: string
  delivery_id: string
  release: number
  /** The relay of this worker. */
  relayId: string
  /** Whether it is the first attempt, by `deliverOnce`. */
  first: boolean
}

/** Attempts to read a delivery that others change, or whose slot they take, meanwhile. */
const READS = 3

/** Begins the attempt if it is due and has a slot. @returns the job, or the answer without an attempt. */
export async function prepareAttempt(db: Database, of: Preparation, reads = 1): Promise<Prepared> {
  const prepared = await db.tenant(of.organization_id, SYSTEM, (tx) => tryPreparing(tx, of))
  if (prepared) return prepared
  return reads < READS ? prepareAttempt(db, of, reads + 1) : { done: { ...NO_SLOT, retry_in_ms: 1_000 } }
}

type Prepared = { done: DeliverAnswer } | { done?: undefined; job: DeliveryJob; number: number }

/** @returns undefined if the delivery was changed, or its slot taken, after it was read. */
async function tryPreparing(
  tx: Tenant,
  { delivery_id, release, relayId, first }: Preparation,
): Promise<Prepared | undefined> {
  const job = await loadDelivery(tx, delivery_id)
  if (!job) return { done: { status: 'failed', error: 'the delivery no longer exists' } }
  const done = answerUnlessDue(job, release)
  if (done) return { done }
  // The relay's lease has expired, because the attempt started late. `deliverUntilDone` takes another slot.
  if (first && !job.has_slot) return { done: NO_SLOT }
  if (!job.has_slot && (job.free ?? 0) <= 0)
    return { done: { ...NO_SLOT, retry_in_ms: await waitForSlot(tx, delivery_id) } }
  // The retry schedule was shortened.
  if (job.answered > scheduleOf(job).length) {
    const error = 'the retry schedule of the webhook allows no further attempt'
    await endDelivery(tx, delivery_id, 'failed', error)
    return { done: { status: 'failed', error } }
  }
  const capped = job.test ? undefined : await takeRate(tx, delivery_id, job)
  if (capped) {
    const retry_in_ms = Math.max(1, capped.getTime() - Date.now())
    return { done: { status: 'waiting', error: RATE, retry_in_ms } }
  }
  const number = await beginAttempt(tx, delivery_id, relayId, job)
  return number === undefined ? undefined : { job, number }
}

/** The answer without an attempt; undefined if the workflow of this release must send the delivery now. */
function answerUnlessDue(job: DeliveryJob, release: number): DeliverAnswer | undefined {
  if (job.status !== 'queued' && job.status !== 'delivering') return { status: job.status }
  // The delivery was held and released in the meantime: another workflow delivers it.
  if (job.releases !== release) return { status: 'held' }
  const early = job.next_attempt_at ? job.next_attempt_at.getTime() - Date.now() : 0
  return early > 0 ? { status: 'waiting', retry_in_ms: early } : undefined
}

/** A test delivery has no retries. */
export const scheduleOf = (job: DeliveryJob) => (job.test ? [] : delaysOf(job.retry_schedule))
