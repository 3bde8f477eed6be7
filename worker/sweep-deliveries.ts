import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import type { Logger } from '../db/log.ts'
import { endUnrecordedDelivery } from '../db/outgoing/moves/attempts.ts'
import { releaseDeliveries, releaseForQuota } from '../db/outgoing/moves/holds.ts'
import type { Release } from '../db/outgoing/moves/queue.ts'
import { claimIdleDeliveries, listStrandedEndpoints } from '../db/outgoing/queue.ts'
import type { Database } from '../db/postgres/connect.ts'
import { SYSTEM } from '../db/postgres/tenancy.ts'
import { deliveryWorkflowId } from './queues/deliveries.ts'

const BATCH = 200

interface Deps {
  db: Database
  client: Client
  log: Logger
}

/**
 * Sweeps deliveries: ends those whose workflow ended without recording it (an operator terminated it), and releases
 * those that are held without a reason. `idle` is a PostgreSQL interval.
 */
export async function sweepDeliveries(deps: Deps, idle: string): Promise<void> {
  await endUnrecorded(deps, idle)
  await releaseForQuota(deps.db.system)
  for (const { organization_id, id } of await listStrandedEndpoints(deps.db.system))
    await deps.db.tenant(organization_id, SYSTEM, (tx) => releaseDeliveries(tx, id))
}

async function endUnrecorded({ db, client, log }: Deps, idle: string): Promise<void> {
  for (const release of await claimIdleDeliveries(db.system, idle, BATCH)) {
    const end = await endOf(client, release)
    if (!end) continue
    const { organization_id, id } = release
    const ended = await db.tenant(organization_id, SYSTEM, (tx) =>
      endUnrecordedDelivery(tx, release, end.status, end.error),
    )
    if (ended) log.warn({ organization_id, delivery_id: id }, end.error)
  }
}

async function endOf(client: Client, release: Release) {
  try {
    const { status } = await client.workflow.getHandle(deliveryWorkflowId(release)).describe()
    if (status.name === 'RUNNING') return undefined
    const stopped = status.name === 'TERMINATED' || status.name === 'CANCELLED'
    const error = `The delivery's workflow was ${status.name.toLowerCase()} in Temporal.`
    return { status: stopped ? ('cancelled' as const) : ('failed' as const), error }
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
    return { status: 'failed' as const, error: "Temporal no longer has the delivery's workflow." }
  }
}
