import { endUnrecordedDelivery } from '../../db/outgoing/moves/attempts.ts'
import { releaseDeliveries, releaseForQuota } from '../../db/outgoing/moves/holds.ts'
import type { Release } from '../../db/outgoing/moves/queue.ts'
import { claimIdleDeliveries, listStrandedEndpoints } from '../../db/outgoing/queue.ts'
import { SYSTEM } from '../../db/postgres/tenancy.ts'
import { deliveryWorkflowId } from '../queues/deliveries.ts'
import { BATCH, type SweepDeps } from './deps.ts'
import { describeEach, type Found } from './describe.ts'

/** Checks the deliveries in progress that were not checked for `idle` (a PostgreSQL interval). */
export async function sweepIdleDeliveries(deps: SweepDeps, idle: string): Promise<void> {
  const since = new Date()
  for (;;) {
    const releases = await claimIdleDeliveries(deps.db.system, idle, since, BATCH)
    await checkDeliveries(deps, releases)
    if (releases.length < BATCH || !(await deps.keepOn())) return
  }
}

/** Ends deliveries whose workflow ended without recording it (an operator terminated it). */
export async function checkDeliveries(deps: SweepDeps, releases: Release[]): Promise<void> {
  const { db, log } = deps
  await describeEach(deps, releases, deliveryWorkflowId, async (release, found) => {
    const end = endOf(found)
    if (!end) return
    const { organization_id, id } = release
    const ended = await db.tenant(organization_id, SYSTEM, (tx) =>
      endUnrecordedDelivery(tx, release, end.status, end.error),
    )
    if (ended) log.warn({ organization_id, delivery_id: id }, end.error)
  })
}

function endOf(found: Found) {
  if (found === 'not_found')
    return { status: 'failed' as const, error: "Temporal no longer has the delivery's workflow." }
  const { name } = found.workflow.status
  if (name === 'RUNNING') return undefined
  const stopped = name === 'TERMINATED' || name === 'CANCELLED'
  const error = `The delivery's workflow was ${name.toLowerCase()} in Temporal.`
  return { status: stopped ? ('cancelled' as const) : ('failed' as const), error }
}

/** Releases deliveries that are held without a reason. */
export async function releaseHeld({ db }: SweepDeps): Promise<void> {
  await releaseForQuota(db.system)
  for (const { organization_id, id } of await listStrandedEndpoints(db.system))
    await db.tenant(organization_id, SYSTEM, (tx) => releaseDeliveries(tx, id))
}
