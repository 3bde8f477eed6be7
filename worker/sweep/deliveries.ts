import { SYSTEM } from '../../db/model/actor.ts'
import { endUnrecordedDelivery, requeueDelivery } from '../../db/outgoing/moves/attempts.ts'
import { markPaused, releaseDeliveries, releaseForQuota } from '../../db/outgoing/moves/holds.ts'
import type { Release } from '../../db/outgoing/moves/queue.ts'
import { claimIdleDeliveries, listStrandedEndpoints, signalInterrupted } from '../../db/outgoing/queue.ts'
import { deliveryWorkflowId } from '../queues/deliveries.ts'
import { BATCH, type CheckDeps, type SweepDeps } from './deps.ts'
import { describeEach, type Found, pausedActivity } from './describe.ts'

/** Checks the deliveries in progress that were not checked for `idle` (a PostgreSQL interval). */
export async function sweepIdleDeliveries(deps: SweepDeps, idle: string): Promise<void> {
  const since = new Date()
  for (;;) {
    const releases = await claimIdleDeliveries(deps.db.system, idle, since, BATCH)
    await checkDeliveries(deps, releases)
    if (releases.length < BATCH || !(await deps.keepOn())) return
  }
}

/**
 * Ends deliveries whose workflow an operator ended, continues those whose workflow is missing, and records pauses by
 * operators.
 */
export async function checkDeliveries(deps: CheckDeps, releases: Release[]): Promise<void> {
  const { db, log } = deps
  await describeEach(deps, releases, deliveryWorkflowId, async (release, found) => {
    const { state, reason } = stateOf(found)
    const paused = found !== 'not_found' && pausedActivity(found.workflow) !== undefined
    const { organization_id, id } = release
    const moved = await db.tenant(organization_id, SYSTEM, async (tx) => {
      if (state === 'missing') return requeueDelivery(tx, release)
      if (state !== 'running') return endUnrecordedDelivery(tx, release, state, reason)
      await markPaused(tx, release, paused)
      // The database was restored to an earlier moment: the workflow waits for the time of a later attempt.
      await signalInterrupted(tx, release)
      return false
    })
    if (moved) log.warn({ organization_id, delivery_id: id, state }, reason)
  })
}

function stateOf(found: Found): { state: 'running' | 'missing' | 'cancelled' | 'failed'; reason: string } {
  if (found === 'not_found')
    return { state: 'missing', reason: "Temporal does not have the delivery's workflow." }
  const { name } = found.workflow.status
  const reason = `The delivery's workflow was ${name.toLowerCase()} in Temporal.`
  if (name === 'RUNNING') return { state: 'running', reason }
  if (name === 'COMPLETED') return { state: 'missing', reason }
  return { state: name === 'TERMINATED' || name === 'CANCELLED' ? 'cancelled' : 'failed', reason }
}

/** Releases deliveries that are held although the reason is gone. */
export async function releaseHeld({ db }: SweepDeps): Promise<void> {
  await releaseForQuota(db.system)
  for (const { organization_id, id } of await listStrandedEndpoints(db.system))
    await db.tenant(organization_id, SYSTEM, (tx) => releaseDeliveries(tx, id))
}
