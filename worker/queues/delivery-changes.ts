import { WorkflowNotFoundError } from '@temporalio/client'
import { changed } from '../../workflows/deliver.ts'
import type { Queue } from '../relay.ts'
import { deliveryWorkflowId } from './deliveries.ts'

interface ChangedRow {
  organization_id: string
  id: string
  releases: number
  changes: number
}

/** Deliveries that were cancelled, held or made due under their workflow, and whose workflow has not been told. */
export const deliveryChangesQueue: Queue<ChangedRow> = {
  name: 'delivery changes',
  channel: 'agx_delivery_changes',
  async claim(db, limit) {
    const { rows } = await db.raw<{ rows: ChangedRow[] }>(
      `update deliveries set lease_until = now() + interval '10 seconds'
       where (organization_id, id) in (
         select organization_id, id from deliveries
         where changes > changes_told and status <> 'queued' and (lease_until is null or lease_until < now())
         order by id limit ? for update skip locked)
       returning organization_id, id, releases, changes`,
      [limit],
    )
    return rows
  },
  async start(client, row) {
    try {
      await client.workflow.getHandle(deliveryWorkflowId(row)).signal(changed)
    } catch (error) {
      // It has just ended, having read the row.
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  },
  async started(db, rows) {
    await db.raw(
      `update deliveries d set changes_told = r.changes,
         lease_until = case when d.status = 'queued' then d.lease_until end
       from jsonb_to_recordset(?) as r(organization_id uuid, id uuid, changes integer)
       where d.organization_id = r.organization_id and d.id = r.id and d.changes_told < r.changes`,
      [JSON.stringify(rows)],
    )
  },
  async refused() {},
}
