/**
 * The statuses of a delivery, and the table of all moves between them. The files in `db/outgoing/moves/` contain the
 * statements: nothing else changes `deliveries.status`. `test/db/outgoing/moves.test.ts` reads this table and tries
 * every move on every status.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | insertDeliveries, insertDelivery | (none) | queued, held | the relay, for each event and endpoint; the API, for a resend or a test | held for `endpoint` if the endpoint is Inactive, for `quota` if the month's quota is used up; a test is always queued | |
 * | markDeliveriesStarted | queued | delivering | the relay, after Temporal accepted the start | of the same release; its first attempt does not hold the row | ends the lease |
 * | failDeliveryStart | queued | failed | the relay, when Temporal rejects the start | of the same release | ends the lease |
 * | beginAttempt | queued, delivering | delivering | the delivery's workflow | of the same release, due as it was read, and with a slot | counts and logs the attempt |
 * | endAttempt, succeeded | held, queued, delivering, failed, cancelled | succeeded | the delivery's workflow | the receiver accepted it, so it has arrived whatever its status was | completes the log of the attempt; wakes the relay for the free slot |
 * | endAttempt, failed | held, queued, delivering | failed | the delivery's workflow | no further attempt is due, and no later one has begun | completes the log of the attempt; wakes the relay for the free slot |
 * | endAttempt, retried | delivering | delivering | the delivery's workflow | a further attempt is due, and no later one has begun | sets next_attempt_at, also of a paused one, which frees the slot; completes the log of the attempt; wakes the relay for the free slot |
 * | endDelivery | held, queued, delivering | failed, cancelled | the workflow, if the retry schedule was shortened; the API, to cancel | | wakes the relay for the free slot |
 * | endUnrecordedDelivery | delivering | failed, cancelled | the sweep, when the workflow was terminated, cancelled or failed in Temporal | of the same release | wakes the relay for the free slot |
 * | requeueDelivery | delivering | queued | the sweep, when Temporal does not have the workflow, or it completed without its end in the row; any worker, when the relay that had it is dead | of the same release and relay | counts the release: a new workflow continues; wakes the relay |
 * | holdDeliveries | queued, delivering | held | whatever makes the endpoint Inactive: the API, a 410, five days without a success | not a test | held for `endpoint`; signals the workflow, which ends |
 * | releaseDeliveries | held | queued, held | the API, when it makes the endpoint Active; the sweep | held for `endpoint`; within the quota queued, else held for `quota` | counts the release: a new workflow continues; charges the quota |
 * | releaseForQuota | held | queued | the sweep, when the month has changed; for one organization the change of its plan | held for `quota`, the endpoint is Active, the quota allows it | counts the release, charges the quota |
 * | pauseDelivery | held, queued, delivering | held | the API | not paused yet | held for `paused`; keeps next_attempt_at; signals the workflow, which ends; wakes the relay for the free slot |
 * | resumeDelivery | held | queued, held | the API | held for `paused`; held for `endpoint` if the endpoint is Inactive, for `quota` if the quota is used up | counts the release: a new workflow continues, when the next attempt is due; charges the quota |
 *
 * The relay's claim of a queued delivery leases it, and is no move; after a dead relay it counts the release.
 * A move from any other status does not change the delivery. It returns false or the count of moved rows
 * (beginAttempt returns no number; endAttempt returns the status, and always completes the log of the attempt).
 */
export const OPEN_DELIVERY_STATUSES = ['held', 'queued', 'delivering'] as const
const DELIVERY_END_STATUSES = ['succeeded', 'failed', 'cancelled'] as const
export const DELIVERY_STATUSES = [...OPEN_DELIVERY_STATUSES, ...DELIVERY_END_STATUSES] as const

export type DeliveryEnd = (typeof DELIVERY_END_STATUSES)[number]
/** The row is authoritative: a workflow ends if it finds its row held, ended or released again. */
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

export const isDeliveryEnd = (status: DeliveryStatus): status is DeliveryEnd =>
  (DELIVERY_END_STATUSES as readonly string[]).includes(status)

/**
 * The reason why a delivery is held. `paused`: in the API, which alone resumes it. `operator`: its activity is paused in
 * Temporal; its status is then still `delivering`, because its workflow goes on when the activity is unpaused.
 */
export const HELD_FOR = ['endpoint', 'quota', 'paused', 'operator'] as const
export type HeldFor = (typeof HELD_FOR)[number]
