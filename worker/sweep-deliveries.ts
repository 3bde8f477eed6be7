import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import type { Logger } from '../db/log.ts'
import { endDelivery } from '../db/outgoing/attempts.ts'
import { releaseDeliveries } from '../db/outgoing/hold.ts'
import { releaseForQuota } from '../db/outgoing/quota.ts'
import type { Database } from '../db/postgres/connect.ts'
import { SYSTEM } from '../db/postgres/tenancy.ts'
import { deliveryWorkflowId } from './queues/deliveries.ts'

const BATCH = 200

interface BusyRow {
  organization_id: string
  id: string
  releases: number
}

interface Deps {
  db: Database
  client: Client
  log: Logger
}

/**
 * The sweep's part for deliveries: those whose workflow ended without their row knowing (an operator terminated it)
 * end too, and free their endpoint's slot; those held without a reason any more are released. `idle` is an interval.
 */
export async function sweepDeliveries(deps: Deps, idle: string): Promise<void> {
  await endUnrecorded(deps, idle)
  await releaseForQuota(deps.db.system)
  await releaseStranded(deps.db)
}

/** The row is looked up in Temporal; the longest not looked up first. */
async function endUnrecorded({ db, client, log }: Deps, idle: string): Promise<void> {
  const { rows } = await db.system.raw<{ rows: BusyRow[] }>(
    `update deliveries set checked_at = now() where (organization_id, id) in (
       select organization_id, id from deliveries
       where status = 'delivering' and coalesce(checked_at, started_at) < now() - cast(? as interval)
       order by coalesce(checked_at, started_at) limit ?)
     returning organization_id, id, releases`,
    [idle, BATCH],
  )
  for (const row of rows) {
    const end = await endOf(client, row)
    if (!end) continue
    const recorded = await db.tenant(row.organization_id, SYSTEM, async (tx) => {
      const still = await tx
        .trx('deliveries')
        .where({
          organization_id: tx.organizationId,
          id: row.id,
          status: 'delivering',
          releases: row.releases,
        })
        .forUpdate()
        .first('id')
      if (still) await endDelivery(tx, row.id, end.status, end.error)
      return still !== undefined
    })
    if (recorded) log.warn({ organization_id: row.organization_id, delivery_id: row.id }, end.error)
  }
}

async function endOf(client: Client, row: BusyRow) {
  try {
    const { status } = await client.workflow.getHandle(deliveryWorkflowId(row)).describe()
    if (status.name === 'RUNNING') return undefined
    const stopped = status.name === 'TERMINATED' || status.name === 'CANCELLED'
    const error = `The delivery's workflow was ${status.name.toLowerCase()} in Temporal.`
    return { status: stopped ? ('cancelled' as const) : ('failed' as const), error }
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
    return { status: 'failed' as const, error: 'Temporal does not know the delivery any more.' }
  }
}

/** An event that was matched at the moment at which its endpoint became Active. */
async function releaseStranded(db: Database): Promise<void> {
  const { rows } = await db.system.raw<{ rows: { organization_id: string; id: string }[] }>(
    `select w.organization_id, w.id from outgoing_webhooks w
     where w.status = 'Active' and exists (select from deliveries d where d.organization_id = w.organization_id
       and d.webhook_id = w.id and d.status = 'held' and d.held_for = 'endpoint')`,
  )
  for (const { organization_id, id } of rows)
    await db.tenant(organization_id, SYSTEM, (tx) => releaseDeliveries(tx, id))
}
