import { WorkflowNotFoundError } from '@temporalio/client'
import { type ClaimedChange, claimDeliveryChanges, markChangesSignalled } from '../../db/outgoing/queue.ts'
import { changed } from '../../workflows/deliver.ts'
import type { Queue } from '../relay.ts'
import { deliveryWorkflowId } from './deliveries.ts'

/** Deliveries that were cancelled, held or made due while their workflow runs; the workflow must be signalled. */
export const deliveryChangesQueue: Queue<ClaimedChange> = {
  name: 'delivery changes',
  channel: 'agx_delivery_changes',
  claim: claimDeliveryChanges,
  async start(client, row) {
    try {
      await client.workflow.getHandle(deliveryWorkflowId(row)).signal(changed)
    } catch (error) {
      // The workflow read the row and has just ended.
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  },
  started: markChangesSignalled,
  async refused() {},
}
