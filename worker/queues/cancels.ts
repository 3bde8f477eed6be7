import { WorkflowNotFoundError } from '@temporalio/client'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'

interface CancelRow {
  organization_id: string
  id: string
  kind: 'run' | 'node_test'
}

/** Runs whose cancellation was asked for, and that Temporal has not been told of. Telling it twice is harmless. */
export const cancelsQueue: Queue<CancelRow> = {
  name: 'cancels',
  channel: 'agx_cancels',
  async claim(db, limit) {
    const { rows } = await db.raw<{ rows: CancelRow[] }>(
      `update runs set lease_until = now() + interval '10 seconds'
       where (organization_id, id) in (
         select organization_id, id from runs
         where status = 'running' and cancel_requested_at is not null and cancel_sent_at is null
           and (lease_until is null or lease_until < now())
         order by cancel_requested_at limit ? for update skip locked)
       returning organization_id, id, kind`,
      [limit],
    )
    return rows
  },
  async start(client, row) {
    try {
      await client.workflow.getHandle(workflowIdOf(row)).cancel()
    } catch (error) {
      // It has just ended; what is not on record of it the sweep finds.
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  },
  async started(db, rows) {
    await db('runs')
      .whereIn(
        ['organization_id', 'id'],
        rows.map((row) => [row.organization_id, row.id]),
      )
      .update({ cancel_sent_at: db.fn.now(), lease_until: null })
  },
  async refused() {},
}
